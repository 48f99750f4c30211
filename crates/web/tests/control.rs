//! The control socket and its client, over a real socket.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use api::OrderRefusal;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;
use web::{
    client::{self, Error},
    control::{ControlPages, serve},
};

const LIMIT: Duration = Duration::from_secs(10);

struct Rig {
    socket: PathBuf,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Rig {
    async fn start(folder: &Path) -> Self {
        let socket = folder.join("run/control.sock");
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let pages = ControlPages::default()
            .with_page("/v1/devices", || Ok("[1, 2]".to_owned()))
            .with_action("/v1/double", |number: u32| async move {
                match number {
                    0 => Err(OrderRefusal::hindered("nothing to double", "send a number")),
                    number => Ok((number * 2).to_string()),
                }
            });
        let (path, stop) = (socket.clone(), cancel.clone());
        tasks.spawn(async move { serve(&path, pages, stop).await });
        while !socket.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Self {
            socket,
            cancel,
            tasks,
        }
    }

    async fn stop(mut self) {
        self.cancel.cancel();
        let ended = timeout(LIMIT, self.tasks.join_next()).await;
        assert!(ended.is_ok(), "ends when told to");
        assert!(!self.socket.exists(), "leaves no socket");
    }
}

#[tokio::test]
async fn answers_and_names_its_pages() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(folder.path()).await;
    let body = client::read_page(&rig.socket, "/v1/devices").await.unwrap();
    assert_eq!(&body[..], b"[1, 2]");
    let error = client::read_page(&rig.socket, "/nothing")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("/v1/devices"), "{error}");
    rig.stop().await;
}

#[tokio::test]
async fn a_silent_peer_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(folder.path()).await;
    let silent = tokio::net::UnixStream::connect(&rig.socket).await.unwrap();
    rig.stop().await;
    drop(silent);
}

#[tokio::test]
async fn an_absent_agent_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    let error = client::read_page(&path, "/v1/devices").await.unwrap_err();
    assert!(matches!(error, Error::NoAgent { .. }), "{error}");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let error = client::read_page(&path, "/v1/devices").await.unwrap_err();
    assert!(matches!(error, Error::NoAgent { .. }), "{error}");
}

#[tokio::test]
async fn an_action_is_carried_out_or_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let rig = Rig::start(folder.path()).await;
    let body = client::post(&rig.socket, "/v1/double", &21).await.unwrap();
    assert_eq!(&body[..], b"42");
    let refused = client::post(&rig.socket, "/v1/double", &0)
        .await
        .unwrap_err();
    assert_eq!(refused.to_string(), "nothing to double: send a number");
    let wrong = client::post(&rig.socket, "/v1/double", &"x")
        .await
        .unwrap_err();
    assert!(wrong.to_string().contains("cannot be read"), "{wrong}");
    let huge = "x".repeat(1 << 20);
    let huge = client::post(&rig.socket, "/v1/double", &huge).await;
    assert!(huge.is_err());
    let read = client::read_page(&rig.socket, "/v1/double")
        .await
        .unwrap_err();
    assert!(read.to_string().contains("with POST"), "{read}");
    rig.stop().await;
}
