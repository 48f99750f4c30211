//! Test node: offers that can change, and a front end that serves them.

use std::{path::Path, sync::Arc, time::Duration};

use api::{Phase, Resource};
use jiff::Timestamp;
use kubelet::{
    Status,
    front::{self, FrontSettings},
};
use model::{Cause, CauseKind, Device, Entry, NodeRole, Snapshot, State, Verdict, sample};
use pool::Offers;
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

/// Time limit of waits, far above the times that are tested.
pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const GPU: &str = "nvidia.com/gpu";
pub(crate) const MIG: &str = "nvidia.com/mig-1g.5gb";

/// A running front end.
pub(crate) struct Node {
    pub(crate) offers: watch::Sender<Offers>,
    pub(crate) status: watch::Receiver<Status>,
    cancel: CancellationToken,
    task: JoinSet<()>,
}

impl Node {
    /// Starts a front end with offers of `gpus` healthy cards.
    pub(crate) fn start(settings: FrontSettings, gpus: usize) -> Self {
        Self::with(settings, cards(gpus, &[]))
    }

    pub(crate) fn with(settings: FrontSettings, offers: Offers) -> Self {
        let (offers, receiver) = watch::channel(offers);
        let (sender, status) = watch::channel(Status::default());
        let cancel = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(front::run_front_end(
            settings,
            receiver,
            sender,
            cancel.clone(),
        ));
        Self {
            offers,
            status,
            cancel,
            task,
        }
    }

    pub(crate) async fn reaches(&self, phase: Phase) -> Resource {
        self.shows(&format!("{phase:?}"), |row| row.phase == phase)
            .await
    }

    /// Waits until `wanted` is true for the row of the GPUs.
    pub(crate) async fn shows(&self, what: &str, wanted: impl Fn(&Resource) -> bool) -> Resource {
        self.shows_of(GPU, what, wanted).await
    }

    pub(crate) async fn shows_of(
        &self,
        resource: &str,
        what: &str,
        wanted: impl Fn(&Resource) -> bool,
    ) -> Resource {
        let mut status = self.status.clone();
        let found = timeout(
            LONG,
            status.wait_for(|status| status.find_resource(resource).is_some_and(&wanted)),
        )
        .await;
        match found {
            Ok(Ok(status)) => status.find_resource(resource).unwrap().clone(),
            _ => panic!("not {what}: {:?}", self.status.borrow()),
        }
    }

    /// Cancels the front end and waits for its end.
    pub(crate) async fn stop(mut self) {
        self.cancel.cancel();
        timeout(LONG, self.task.join_next())
            .await
            .expect("the front end does not end")
            .unwrap()
            .unwrap();
    }
}

/// Offers of a node with `count` cards. Those at the places `unhealthy` are unhealthy.
pub(crate) fn cards(count: usize, unhealthy: &[usize]) -> Offers {
    let devices = (0..count)
        .map(|at| entry(at, unhealthy.contains(&at)))
        .collect();
    snapshot(devices)
}

/// Offers of a node with one card and one MIG device, which may be unhealthy.
pub(crate) fn mixed(unhealthy: bool) -> Offers {
    let mut partition = entry(1, unhealthy);
    partition.device_mut().kind = sample::sample_partition(9, 0).kind;
    snapshot(vec![entry(0, false), partition])
}

fn snapshot(devices: Vec<Entry>) -> Offers {
    pool::offers(
        nvidia_rules::VENDORS,
        &Arc::new(Snapshot {
            devices,
            ..Snapshot::empty_at(Timestamp::UNIX_EPOCH)
        }),
    )
}

fn entry(at: usize, unhealthy: bool) -> Entry {
    let mut device = Device {
        id: format!("GPU-{at:04}").into(),
        numa: (at % 3 != 2).then_some(u32::from(at % 3 == 1)),
        ..sample::sample_card(u32::try_from(at).unwrap())
    };
    device.nodes.retain(|node| node.role == NodeRole::Own);
    let mut verdict = Verdict::default();
    if unhealthy {
        verdict.state = State::Unhealthy;
        verdict.causes.push(Cause {
            kind: CauseKind::Event,
            evidence: "XID 79".to_owned(),
            since: Timestamp::UNIX_EPOCH,
            ends_when: "a reset".to_owned(),
        });
    }
    let device = device.into();
    Entry { device, verdict }
}

/// Names of our sockets in a folder, sorted.
pub(crate) fn sockets(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut ours: Vec<String> = names.filter(|name| name.starts_with("ostler-")).collect();
    ours.sort();
    ours
}
