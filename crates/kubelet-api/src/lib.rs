//! The kubelet's gRPC APIs: generated messages and services, one module per API, and the constants
//! of these APIs.

// The API has not changed between Kubernetes 1.34 and 1.37.
/// Device plugin API, `v1beta1`.
#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod deviceplugin {
    include!(concat!(env!("OUT_DIR"), "/deviceplugin/v1beta1.rs"));
}

// `cpu_ids` and `memory` of a pod are in 1.37 and newer. An older kubelet leaves them empty.
/// Pod resources API, `v1`.
#[expect(
    missing_docs,
    clippy::allow_attributes,
    clippy::too_many_lines,
    reason = "generated"
)]
pub mod podresources {
    include!(concat!(env!("OUT_DIR"), "/podresources/v1.rs"));
}

// The constants are those of staging/src/k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/constants.go.
/// Version of the device plugin API. It is the only one.
pub const VERSION: &str = "v1beta1";
/// Health of a device that may be allocated.
pub const HEALTHY: &str = "Healthy";
/// Health of a device that is listed and must not be allocated.
pub const UNHEALTHY: &str = "Unhealthy";
/// File name of the kubelet's socket in the device plugin directory.
pub const KUBELET_SOCKET: &str = "kubelet.sock";
// The kubelet sets no limit of its own, so this is grpc-go's default for received messages.
/// Size limit, in bytes, of a message to the kubelet.
pub const MESSAGE_LIMIT: usize = 4 << 20;
