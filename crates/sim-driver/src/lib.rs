//! NVML's C ABI over a node's folder: the library that a program gets as `libnvidia-ml.so.1`.
//!
//! Names, structures and codes are those of NVML 13. All of its functions are exported; those that
//! are not simulated are in `stub` and return `NOT_SUPPORTED`. All unsafe code is in `wire` and
//! `session`. The functions are safe Rust behind the `nvml!` macro, which takes the same steps for
//! each call: record it, delay or fail it according to the node's faults, look up the device of the
//! handle, reject NULL where a pointer is required, and catch panics.
//!
//! Changes by programs (modes, limits, MIG instances) are written to the node's folder, so that all
//! processes see them.

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

/// Exports functions under their C names. `device` functions take a handle first; the body gets the
/// device. The same holds for `part` functions with a GPU instance and `compute` functions with a
/// compute instance. `system` functions get the state. `plain` functions get only their name, and
/// check their arguments themselves.
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
