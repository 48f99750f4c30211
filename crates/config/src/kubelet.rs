//! The section `kubelet`.

use std::path::PathBuf;

use host::socket::PATH_LIMIT;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Config,
    source::{At, Section},
};

/// The shortest name that our sockets have: prefix, hash of the resource, nonce, a number of up
/// to ten digits, for which one registration a second would take 300 years.
const SHORTEST_SOCKET: usize = "/ostler-xxxxxxxx-xxxxxxxx-nnnnnnnnnn.sock".len();

/// Paths of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Kubelet {
    /// The device plugin folder.
    pub dir: PathBuf,
    /// The pod resources socket; it need not exist.
    pub pod_resources_socket: PathBuf,
    /// Registers resources. If `false`, nothing is offered and everything else works.
    pub register: bool,
}

// === impl Kubelet ===

impl Section for Kubelet {
    fn read(&mut self, at: &mut At<'_>) {
        at.set("dir", &mut self.dir);
        at.set("podResourcesSocket", &mut self.pod_resources_socket);
        at.set("register", &mut self.register);
        if at.place("dir").is_some()
            && let Some((message, help)) = self.lacks_room()
        {
            at.error("dir", message, help);
        }
    }
}

impl Kubelet {
    /// The longest path of the device plugin folder in which every socket of ours fits.
    pub(crate) const DIR_LIMIT: usize = PATH_LIMIT - SHORTEST_SOCKET;

    /// Returns a message and its remedy if our sockets do not fit into the device plugin folder,
    /// whatever the resources are called.
    pub(crate) fn lacks_room(&self) -> Option<(String, String)> {
        let (length, room) = (self.dir.as_os_str().len(), Self::DIR_LIMIT);
        (length > room).then(|| {
            let message = format!(
                "the path has {length} bytes; with a socket's name it would not fit the system's \
                 limit of {PATH_LIMIT}"
            );
            let help = format!("mount the kubelet's folder at a path of at most {room} bytes");
            (message, help)
        })
    }
}

impl Default for Kubelet {
    fn default() -> Self {
        Self {
            dir: Config::KUBELET_DIR.into(),
            pod_resources_socket: Config::POD_RESOURCES_SOCKET.into(),
            register: true,
        }
    }
}
