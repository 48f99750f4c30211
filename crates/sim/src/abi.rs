//! NVML's C ABI over a node's folder: what a program finds that loads `libnvidia-ml.so.1`.
//!
//! Names, layouts and codes are NVML 13's. All unsafe code is in [`wire`] and [`session`]; the
//! functions themselves are safe Rust behind the [`nvml!`] macro, which counts, delays or fails
//! each call as the node's faults say, and lets no panic out.

mod call;
mod code;
mod event;
mod field;
mod identity;
mod instance;
mod link;
mod memory;
mod partition;
mod sensor;
mod session;
mod shape;
mod stub;
mod system;
mod topology;
mod watch;
mod wire;

/// Exports functions under their C names. `device` functions take a handle first and are given
/// the device; `system` functions are given the state; `plain` ones nothing but their name.
macro_rules! nvml {
    ($($kind:ident $($name:ident),+: $args:tt |$it:ident| $body:expr;)*) => {
        $($(nvml!(@ $kind $name $args $it $body);)+)*
    };
    (@ device $name:ident ($($arg:ident: $type:ty),* $(,)?) $it:ident $body:expr) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            device: $crate::abi::wire::Handle,
            $($arg: $type),*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::abi::call::device(stringify!($name), device, |$it| $body)
        }
    };
    (@ system $name:ident ($($arg:ident: $type:ty),* $(,)?) $it:ident $body:expr) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            $($arg: $type),*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::abi::call::system(stringify!($name), |$it| $body)
        }
    };
    (@ plain $name:ident ($($arg:ident: $type:ty),* $(,)?) $it:ident $body:expr) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            $($arg: $type),*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            let $it = stringify!($name);
            $crate::abi::call::answer(|| $body)
        }
    };
}
pub(crate) use nvml;
