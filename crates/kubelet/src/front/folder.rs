//! Watch of the kubelet's folder, for the existence and the identity of `kubelet.sock`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use host::{
    FileIdentity,
    watch::{WatchMode, WatchedFolder},
};
use kubelet_api::KUBELET_SOCKET;
use tokio::sync::watch;

/// State of the folder at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderView {
    /// Identity of `kubelet.sock`; `None` if there is none.
    pub(crate) kubelet: Option<FileIdentity>,
    /// True if the folder exists.
    pub(crate) exists: bool,
}

/// Reads the folder after every change and every `pause`, and publishes the result each time, even
/// an equal one: it is the signal for readers to check their own files. Runs until dropped.
pub(crate) async fn watch_folder(
    dir: PathBuf,
    events: WatchMode,
    pause: Duration,
    view: watch::Sender<FolderView>,
) {
    let mut folder = WatchedFolder::new(&dir, events, pause);
    loop {
        // Two calls of stat on a local folder block for less time than a change of thread costs.
        view.send_replace(FolderView::read_folder(&dir));
        folder.wait_for_change().await;
    }
}

// === impl FolderView ===

impl FolderView {
    /// Reads the state of the folder now.
    pub(crate) fn read_folder(dir: &Path) -> Self {
        Self {
            kubelet: FileIdentity::of_entry(&dir.join(KUBELET_SOCKET)),
            exists: dir.is_dir(),
        }
    }
}
