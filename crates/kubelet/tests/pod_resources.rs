//! Tests of the pod resources client on the simulated kubelet and on faulty sockets.

use std::{os::unix::net::UnixListener, time::Duration};

use kubelet::pod_resources::{Error, PodResourcesClient};
use sim::kubelet::{Kubelet, KubeletSettings};

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_kubelet_without_devices_and_pods_answers_with_empty_lists() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("pod-resources.sock");
    let settings = KubeletSettings {
        pod_resources: Some(socket.clone()),
        ..KubeletSettings::new(dir.path().join("plugins"))
    };
    let kubelet = Kubelet::start_kubelet(settings).await.unwrap();
    let client = PodResourcesClient::new(&socket, LIMIT);
    assert_eq!(client.list_pods().await.unwrap().pod_resources, []);
    assert_eq!(client.list_allocatable().await.unwrap().devices, []);
    // Each call makes a new connection, so a restart does not matter.
    kubelet.restart_kubelet().await.unwrap();
    assert_eq!(client.list_pods().await.unwrap().pod_resources, []);
}

#[tokio::test]
async fn an_absent_socket_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("nobody.sock");
    let error = PodResourcesClient::new(&socket, LIMIT)
        .list_pods()
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
    assert!(error.to_string().contains("nobody.sock"), "{error}");
}

#[tokio::test]
async fn a_kubelet_that_says_nothing_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("silent.sock");
    let _silent = UnixListener::bind(&socket).unwrap();
    let client = PodResourcesClient::new(&socket, Duration::from_millis(100));
    let error = client.list_allocatable().await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }), "{error:?}");
    assert!(
        error.to_string().contains("GetAllocatableResources"),
        "{error}"
    );
}

#[tokio::test]
async fn a_peer_that_speaks_something_else_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("other.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let client = PodResourcesClient::new(&socket, LIMIT);
    let peer = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let text = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, text)
            .await
            .unwrap();
    };
    let (answer, ()) = tokio::join!(client.list_pods(), peer);
    let error = answer.unwrap_err();
    assert!(
        matches!(error, Error::Call { .. } | Error::Transport { .. }),
        "{error:?}"
    );
}
