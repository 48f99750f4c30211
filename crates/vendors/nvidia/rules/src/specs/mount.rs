//! Mounts of a spec: the driver's files. The options are those of NVIDIA's toolkit 1.20.0 (nvcdi).

use std::path::Path;

use model::{DriverFile, FileKind};

use rules::{Mount, join_root};

/// Mount options of files that are only read.
const READ: [&str; 5] = ["ro", "nosuid", "nodev", "rbind", "rprivate"];
/// Mount options of daemon sockets. They are not read-only, because a client writes to its socket.
const TALK: [&str; 5] = ["nosuid", "nodev", "rbind", "rprivate", "noexec"];

/// Returns the path of a file in a container.
pub(super) fn container_path(file: &DriverFile) -> &str {
    file.container_path.as_deref().unwrap_or(&file.path)
}

/// Returns the mount of a file that is under `root` on the host.
pub(super) fn file_mount(root: &Path, file: &DriverFile) -> Mount {
    mount_at(root, file, container_path(file))
}

/// Returns the mount of a file under another path in the container.
pub(super) fn mount_at(root: &Path, file: &DriverFile, path: &str) -> Mount {
    let options = match file.kind {
        FileKind::Ipc => TALK,
        _ => READ,
    };
    Mount {
        host_path: join_root(root, &file.path),
        container_path: path.to_owned(),
        kind: None,
        options: options.map(str::to_owned).into(),
    }
}
