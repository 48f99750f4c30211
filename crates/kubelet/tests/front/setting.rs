//! A registered front end and a minimal kubelet, for tests of the calls between them.

use std::sync::Arc;

use kubelet::front::{FrontSettings, Prepare, Preparing};
use kubelet_api::deviceplugin::ListAndWatchResponse;
use pool::{Offer, Offers};
use tempfile::TempDir;
use tonic::Streaming;

use crate::{
    node::Node,
    registrar::{Plugin, Registrar},
};

/// A registered front end with its kubelet.
pub(crate) struct Setting {
    pub(crate) node: Node,
    pub(crate) plugin: Plugin,
    pub(crate) stream: Streaming<ListAndWatchResponse>,
    pub(crate) kubelet: Registrar,
    _dir: TempDir,
}

/// Refuses every start on the second card.
#[derive(Debug)]
struct Doorkeeper;

impl Prepare for Doorkeeper {
    fn prepare_devices(&self, _: Arc<Offer>, devices: Vec<model::DeviceId>) -> Preparing {
        let taken = devices.iter().any(|device| device.as_str() == "GPU-0001");
        let answer = match taken {
            true => Err("process 7 is on it".to_owned()),
            false => Ok(()),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Starts a node with these offers, and a kubelet that keeps the stream open.
pub(crate) async fn setting(offers: Offers) -> Setting {
    let dir = tempfile::tempdir().unwrap();
    let mut kubelet = Registrar::start(dir.path());
    let settings = FrontSettings {
        prepare: Some(Arc::new(Doorkeeper)),
        ..FrontSettings::new(dir.path())
    };
    let node = Node::with(settings, offers);
    let (plugin, stream) = kubelet.admit().await;
    Setting {
        node,
        plugin,
        stream,
        kubelet,
        _dir: dir,
    }
}
