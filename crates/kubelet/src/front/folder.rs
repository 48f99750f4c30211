//! The kubelet's folder: is there a `kubelet.sock`, and is it still the same one?

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

/// What was seen at the last look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The kubelet's socket.
    pub(crate) kubelet: Option<FileIdentity>,
    /// Whether the folder exists.
    pub(crate) exists: bool,
}

/// Looks at the folder after every change and every `pause`, and publishes every look, so that
/// readers look at their own files too. A look is two calls of stat on a local folder: cheaper than
/// to send them to another thread. Runs until it is dropped.
pub(crate) async fn watch(
    dir: PathBuf,
    events: Events,
    pause: Duration,
    view: watch::Sender<View>,
) {
    let mut folder = Folder::new(&dir, events, pause);
    loop {
        view.send_replace(View::of(&dir));
        folder.changed().await;
    }
}

// === impl View ===

impl View {
    /// Looks now.
    pub(crate) fn of(dir: &Path) -> Self {
        Self {
            kubelet: FileIdentity::of_entry(&dir.join(KUBELET_SOCKET)),
            exists: dir.is_dir(),
        }
    }
}
