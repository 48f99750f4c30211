//! Mounts of a spec: the driver's files.

use std::path::Path;

use model::{DriverFile, FileKind};

use rules::{Mount, under};

/// The options for what is only read.
const READ: [&str; 5] = ["ro", "nosuid", "nodev", "rbind", "rprivate"];
/// The options for the sockets of daemons.
const TALK: [&str; 5] = ["nosuid", "nodev", "rbind", "rprivate", "noexec"];

/// Where a container has a file.
pub(super) fn inside(file: &DriverFile) -> &str {
    file.container_path.as_deref().unwrap_or(&file.path)
}

/// The mount of a file that is under `root` on the host.
pub(super) fn mount(root: &Path, file: &DriverFile) -> Mount {
    at(root, file, inside(file))
}

/// The same file under another name in the container.
pub(super) fn at(root: &Path, file: &DriverFile, path: &str) -> Mount {
    let options = match file.kind {
        FileKind::Ipc => TALK,
        _ => READ,
    };
    Mount {
        host_path: under(root, &file.path),
        container_path: path.to_owned(),
        kind: None,
        options: options.map(str::to_owned).into(),
    }
}
