//! NVML's C ABI over a node's folder: what a program finds that loads `libnvidia-ml.so.1`.
//!
//! Names, layouts and codes are NVML 13's, and every function of it is exported: those that are
//! not simulated are in `stub` and say so. All unsafe code is in `wire` and `session`; the
//! functions themselves are safe Rust behind the `nvml!` macro, which does for each call the
//! same in the same order: it counts, delays or fails it as the node's faults say, finds what the
//! handle stands for, refuses NULL where something is needed, and lets no panic out.
//!
//! What a program sets or makes (modes, limits, MIG instances) is written to the node's folder,
//! so that all processes see it.

mod affinity;
mod board;
mod call;
mod clock;
mod code;
mod compute;
mod engine;
mod event;
mod field;
mod identity;
mod instance;
mod link;
mod memory;
mod partition;
mod pcie;
mod power;
mod process;
mod session;
mod setting;
mod shape;
mod stub;
mod system;
mod topology;
mod watch;
mod wire;

/// Exports functions under their C names. `device` functions take a handle first and are given
/// the device; so are `part` functions, with a GPU instance, and `compute` functions, with a
/// compute instance. `system` functions are given the state; `plain` ones nothing but their name,
/// and look at their arguments themselves.
macro_rules! nvml {
    ($($kind:ident $($name:ident),+: $args:tt |$it:ident| $body:expr;)*) => {
        $($(nvml!(@ $kind $name $args $it $body);)+)*
    };
    (@ device $name:ident $args:tt $it:ident $body:expr) => {
        nvml!(@ for [$crate::call::device] $name $args $it $body);
    };
    (@ part $name:ident $args:tt $it:ident $body:expr) => {
        nvml!(@ for [$crate::instance::on] $name $args $it $body);
    };
    (@ compute $name:ident $args:tt $it:ident $body:expr) => {
        nvml!(@ for [$crate::compute::on] $name $args $it $body);
    };
    (@ for [$call:path] $name:ident ($($arg:ident: $type:ty),* $(,)?) $it:ident $body:expr) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            handle: $crate::wire::Handle,
            $($arg: $type),*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $call(stringify!($name), handle, |$it| {
                $($crate::wire::Arg::present(&$arg)?;)*
                $body
            })
        }
    };
    (@ system $name:ident ($($arg:ident: $type:ty),* $(,)?) $it:ident $body:expr) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            $($arg: $type),*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            $crate::call::system(stringify!($name), |$it| {
                $($crate::wire::Arg::present(&$arg)?;)*
                $body
            })
        }
    };
    (@ plain $name:ident ($($arg:ident: $type:ty),* $(,)?) $it:ident $body:expr) => {
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name(
            $($arg: $type),*
        ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
            let $it = stringify!($name);
            $crate::call::answer(|| $body)
        }
    };
}
pub(crate) use nvml;
