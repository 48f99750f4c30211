//! The kubelet's gRPC contracts: the generated messages and services, one module per API, and the
//! constants that belong to them.

/// The device plugin API, `v1beta1`.
#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod deviceplugin {
    include!(concat!(env!("OUT_DIR"), "/deviceplugin/v1beta1.rs"));
}

/// The pod resources API, `v1`.
#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod podresources {
    include!(concat!(env!("OUT_DIR"), "/podresources/v1.rs"));
}

/// The only version of the device plugin API there is.
pub const VERSION: &str = "v1beta1";
/// The health string of a device that may be allocated.
pub const HEALTHY: &str = "Healthy";
/// The health string of a device that is listed and may not be allocated.
pub const UNHEALTHY: &str = "Unhealthy";
/// The kubelet's socket inside the device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
/// The most bytes the kubelet receives in one message.
pub const MESSAGE_LIMIT: usize = 4 << 20;
