//! The section `kubelet`.

use std::path::PathBuf;

use serde::Serialize;

use crate::Config;

/// Paths of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kubelet {
    /// The device plugin folder.
    pub dir: PathBuf,
    /// The pod resources socket; it need not exist.
    pub pod_resources_socket: PathBuf,
    /// Registers resources. If `false`, nothing is offered and everything else works.
    pub register: bool,
}

// === impl Kubelet ===

impl Default for Kubelet {
    fn default() -> Self {
        Self {
            dir: Config::KUBELET_DIR.into(),
            pod_resources_socket: Config::POD_RESOURCES_SOCKET.into(),
            register: true,
        }
    }
}
