//! An operator and an inventory with some devices, and assertions on every answer. Shared by the
//! tests and the fuzz target `orders`.

use api::{OrderDone, OrderRefusal};
use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, StatusCode, header::CONTENT_TYPE},
};
use health::HealthPolicy;
use http_body_util::BodyExt as _;
use inventory::{ChangeRequests, Inputs, Published};
use jiff::Timestamp;
use model::CardRef;
use model::sample::{VENDOR, sample_card, sample_partition};
use probe::{
    BackendState, ReleaseStatus, Releases, Update,
    supervisor::{OrdersByBackend, ReleaseScope},
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
    task::yield_now,
};
use tower::ServiceExt as _;
use web::{Operator, control::ControlPages};

/// Size limit of a body, in bytes.
pub(crate) const LONGEST: usize = 64 << 10;
/// Number of cards. The second one has a partition.
const CARDS: u32 = 3;

/// Path of an action, and the body that is sent.
pub(crate) type Order<'a> = (&'static str, &'a [u8]);

/// A supervisor without processes that carries out orders at once.
struct Supervisor {
    orders: OrdersByBackend,
    updates: mpsc::Sender<Update>,
}

/// Builds a runtime; it can serve several nodes, one after another.
pub(crate) fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can start")
}

/// Sends orders to a new node, one after another. Returns the status of each answer.
///
/// # Panics
/// If an answer has not the form that every answer must have.
pub(crate) async fn send(orders: &[Order<'_>]) -> Vec<StatusCode> {
    let published = Published::new();
    let mut readers = published.readers();
    let mut policy = HealthPolicy::default();
    policy.health.state_file = None;
    let (_config, policy) = watch::channel(policy);
    let (updates, mut reports) = mpsc::channel(1);
    let (requests, mut queue) = ChangeRequests::open_queue();
    let supervisor = Supervisor {
        orders: OrdersByBackend::default(),
        updates,
    };
    supervisor.orders.start(VENDOR);
    let inputs = Inputs {
        policy,
        updates: &mut reports,
        requests: &mut queue,
        orders: supervisor.orders.clone(),
        boot_id: "this boot".to_owned(),
    };
    let operator = Operator::new(readers.clone(), requests, supervisor.orders.clone());
    let router = operator.add_to(ControlPages::default()).router();
    let work = async {
        supervisor.report().await;
        let met = readers.snapshots.wait_for(|now| !now.devices.is_empty());
        drop(met.await.expect("the inventory runs"));
        let mut answers = Vec::new();
        for order in orders {
            tokio::select! {
                answer = ask(&router, *order) => answers.push(answer),
                never = supervisor.run() => match never {},
            }
        }
        answers
    };
    tokio::select! {
        answers = work => answers,
        () = inventory::run_inventory(inputs, published) => panic!("the inventory ended"),
    }
}

async fn ask(router: &Router, (action, body): Order<'_>) -> StatusCode {
    let request = Request::post(action).body(Body::from(Bytes::copy_from_slice(body)));
    let request = request.expect("actions are constants");
    let answer = router.clone().oneshot(request).await;
    let (head, text) = answer.expect("it cannot fail").into_parts();
    assert_eq!(head.headers[CONTENT_TYPE], "application/json");
    let text = text.collect().await.expect("it is in memory").to_bytes();
    if head.status == StatusCode::OK {
        let done: OrderDone = serde_json::from_slice(&text).expect("what was done can be read");
        assert!(!done.devices.is_empty() && !done.message.is_empty());
        return head.status;
    }
    let refusal: OrderRefusal = serde_json::from_slice(&text).expect("a refusal can be read");
    assert!(!refusal.error.is_empty());
    let too_long = head.status == StatusCode::PAYLOAD_TOO_LARGE;
    assert_eq!(too_long, body.len() > LONGEST, "{}", refusal.error);
    let known = [StatusCode::BAD_REQUEST, StatusCode::CONFLICT];
    assert!(too_long || known.contains(&head.status), "{}", head.status);
    head.status
}

// === impl Supervisor ===

impl Supervisor {
    /// Reports the releases each time they change.
    async fn run(&self) -> std::convert::Infallible {
        let mut told = self.released();
        self.report().await;
        loop {
            yield_now().await;
            let released = self.released();
            if released != told {
                told = released;
                self.report().await;
            }
        }
    }

    async fn report(&self) {
        let sighting = sighting(self.released());
        let sent = self.updates.send(Update::State(Box::new(sighting)));
        sent.await.expect("the inventory runs");
    }

    fn released(&self) -> Releases {
        let release = ReleaseStatus {
            until: Timestamp::MAX,
            own: false,
            closed: true,
        };
        let release = |which| {
            self.orders
                .orders_of(VENDOR)
                .is_release_ordered(which)
                .then_some(release)
        };
        let cards = (0..CARDS).filter_map(|number| sample_card(number).pci.map(CardRef::Pci));
        let cards = cards.filter_map(|card| Some((card, release(ReleaseScope::Card(card))?)));
        Releases {
            all: release(ReleaseScope::All),
            cards: cards.collect(),
        }
    }
}

/// Returns a report of the devices that are not released.
fn sighting(released: Releases) -> BackendState {
    let devices = (0..CARDS).map(sample_card).chain([sample_partition(1, 0)]);
    let devices = devices.filter(|device| released.find_release(device).is_none());
    BackendState {
        released: released.clone(),
        ..probe::sample::backend_state(devices)
    }
}
