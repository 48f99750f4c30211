//! Watch of the kubelet's folder, for the existence and the identity of `kubelet.sock`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use host::{
    FileIdentity,
    watch::{Events, Folder},
};
use kubelet_api::KUBELET_SOCKET;
use tokio::sync::watch;

/// State of the folder at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Identity of `kubelet.sock`; `None` if there is none.
    pub(crate) kubelet: Option<FileIdentity>,
    /// True if the folder exists.
    pub(crate) exists: bool,
}

/// Reads the folder after every change and every `pause`, and publishes the result each time, even
/// an equal one: it is the signal for readers to check their own files. Runs until dropped.
pub(crate) async fn watch(
    dir: PathBuf,
    events: Events,
    pause: Duration,
    view: watch::Sender<View>,
) {
    let mut folder = Folder::new(&dir, events, pause);
    loop {
        // Two calls of stat on a local folder block for less time than a change of thread costs.
        view.send_replace(View::of(&dir));
        folder.changed().await;
    }
}

// === impl View ===

impl View {
    /// Reads the state of the folder now.
    pub(crate) fn of(dir: &Path) -> Self {
        Self {
            kubelet: FileIdentity::of_entry(&dir.join(KUBELET_SOCKET)),
            exists: dir.is_dir(),
        }
    }
}
