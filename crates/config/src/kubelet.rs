//! Section `kubelet`.

use std::path::PathBuf;

use host::socket::PATH_LIMIT;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Config,
    source::{Section, SectionReader},
};

/// Length of the shortest form of a socket's name: prefix, hash of the resource name, nonce, and a
/// number of up to ten digits. Ten digits last 300 years with one registration per second.
const SHORTEST_SOCKET: usize = "/ostler-xxxxxxxx-xxxxxxxx-nnnnnnnnnn.sock".len();

/// Paths of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Kubelet {
    /// Device plugin folder of the kubelet.
    pub dir: PathBuf,
    /// Socket of the kubelet's pod resources API. It need not exist.
    pub pod_resources_socket: PathBuf,
    /// Registers resources with the kubelet. With `false` nothing is offered; everything else
    /// works.
    pub register: bool,
}

// === impl Kubelet ===

impl Section for Kubelet {
    fn read_options(&mut self, at: &mut SectionReader<'_>) {
        at.set_option("dir", &mut self.dir);
        at.set_option("podResourcesSocket", &mut self.pod_resources_socket);
        at.set_option("register", &mut self.register);
        if at.option_place("dir").is_some()
            && let Some((message, help)) = self.lacks_room()
        {
            at.note_option_error("dir", message, help);
        }
    }
}

impl Kubelet {
    /// Longest path, in bytes, of a device plugin folder in which every socket of ours fits.
    // A socket address takes a path of 107 bytes and a NUL (unix(7), `sun_path`).
    pub(crate) const DIR_LIMIT: usize = PATH_LIMIT - SHORTEST_SOCKET;

    /// Returns a message and its remedy if the folder's path is too long for our sockets. The names
    /// of the resources make no difference.
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
