//! The inventory at work: what it hears of, and whom it tells.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use health::Now;
use jiff::Timestamp;
use model::{Snapshot, Transition};
use probe::{
    Released, Update,
    supervisor::{Orders, Which},
};
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{Details, Inventory, Request, Rules, Samples, State, state, state::Loaded};

/// How often verdicts that depend on time are looked at.
const TICK: Duration = Duration::from_secs(1);

/// How many changes of verdicts a listener may be behind.
const BACKLOG: usize = 256;

/// What the inventory hears of.
#[derive(Debug)]
pub(crate) struct Inlets<'a> {
    pub(crate) rules: watch::Receiver<Rules>,
    pub(crate) updates: &'a mut mpsc::Receiver<Update>,
    pub(crate) requests: &'a mut mpsc::Receiver<Request>,
    /// The kernel's id of this boot.
    pub(crate) boot_id: String,
}

/// Whom the inventory tells. They outlive it.
#[derive(Clone, Debug)]
pub(crate) struct Outlets {
    pub(crate) snapshots: watch::Sender<Arc<Snapshot>>,
    /// Every sample as it comes, also those that change nothing.
    pub(crate) samples: watch::Sender<Samples>,
    /// What no probe looks at, by backend.
    pub(crate) released: watch::Sender<BTreeMap<String, Released>>,
    pub(crate) details: watch::Sender<Arc<Details>>,
    /// Every change of a verdict, once.
    pub(crate) transitions: broadcast::Sender<Transition>,
    /// What is to outlive the agent.
    pub(crate) kept: watch::Sender<Option<Arc<State>>>,
    /// Whether what an earlier agent kept was taken over: nothing is looked at before.
    pub(crate) restored: watch::Sender<bool>,
    pub(crate) orders: Orders,
}

/// Takes in updates and publishes snapshots, until the updates end. A new config counts from the
/// moment it is there, for everything that was seen before too.
pub(crate) async fn run(inlets: Inlets<'_>, outlets: Outlets) {
    let Inlets {
        mut rules,
        updates,
        requests,
        boot_id,
    } = inlets;
    let started = Instant::now();
    let mut inventory = Inventory::new(&rules.borrow_and_update(), boot_id);
    let file = rules.borrow().health.state_file.clone();
    let mut unread = None;
    if let Some(file) = file {
        match state::load(file).await {
            Loaded::State(state) => outlets.resume(&mut inventory, *state),
            Loaded::Nothing => {}
            Loaded::Unread => unread = Some(Instant::now() + state::RESPITE),
        }
    }
    outlets.restored.send_replace(true);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let now = || Now {
        wall: Timestamp::now(),
        uptime: started.elapsed(),
    };
    let mut looked = Instant::now();
    let mut done: Vec<oneshot::Sender<()>> = Vec::new();
    loop {
        tokio::select! {
            update = updates.recv() => match update {
                Some(update) => outlets.pass(&mut inventory, update, now()),
                None => return,
            },
            Some(request) = requests.recv() => {
                inventory.obey(&request.what, now());
                done.push(request.done);
            }
            Ok(()) = rules.changed() => inventory.configure(&rules.borrow_and_update()),
            _ = tick.tick() => {
                let spacing = rules.borrow().spacing();
                if inventory.wants_look(now()) && looked.elapsed() >= spacing {
                    looked = Instant::now();
                    outlets.orders.refresh();
                }
            }
        }
        // What comes together is published together.
        while let Ok(update) = updates.try_recv() {
            outlets.pass(&mut inventory, update, now());
        }
        outlets.publish(&mut inventory, now());
        if unread.is_none_or(|until| Instant::now() >= until) {
            outlets.keep(&mut inventory, now());
        }
        for done in done.drain(..) {
            let _ = done.send(());
        }
    }
}

// === impl Outlets ===

impl Outlets {
    /// Channels that nobody listens to yet.
    pub(crate) fn new(orders: Orders) -> Self {
        Self {
            snapshots: watch::Sender::new(Arc::new(Snapshot::empty(Timestamp::now()))),
            samples: watch::Sender::default(),
            released: watch::Sender::default(),
            details: watch::Sender::default(),
            transitions: broadcast::Sender::new(BACKLOG),
            kept: watch::Sender::default(),
            restored: watch::Sender::default(),
            orders,
        }
    }

    fn resume(&self, inventory: &mut Inventory, state: State) {
        // A start of the node ends what an operator had.
        if inventory.is_of_this_boot(&state.health) {
            self.hold(&state);
        }
        inventory.restore(state);
    }

    /// What an operator had when the agent ended is not touched by the next one either.
    fn hold(&self, state: &State) {
        for (name, until) in &state.released {
            let which = match name.as_str() {
                "all" => Some(Which::All),
                card => card.parse().ok().map(Which::Card),
            };
            let left = Duration::try_from(until.duration_since(Timestamp::now())).ok();
            if let (Some(which), Some(left)) = (which, left.filter(|left| !left.is_zero())) {
                tracing::info!(released = name, %until, "released before the agent started");
                self.orders.release(which, left);
            }
        }
    }

    /// Has the inventory take in an update; what is not in snapshots is passed on.
    fn pass(&self, inventory: &mut Inventory, update: Update, now: Now) {
        match &update {
            Update::Sighting(sighting) => {
                let (name, released) = (&sighting.backend.name, &sighting.released);
                self.released.send_if_modified(|known| {
                    let before = known.insert(name.clone(), released.clone());
                    let changed = before.as_ref() != Some(released);
                    inventory.note_release(changed);
                    changed
                });
            }
            Update::Sample(sample) => self.samples.send_modify(|samples| {
                let entry = (Instant::now(), sample.telemetry.clone());
                samples.insert(sample.device.clone(), entry);
            }),
            Update::Checkup(_) | Update::Event(_) => {}
        }
        inventory.take(update, now);
    }

    fn publish(&self, inventory: &mut Inventory, now: Now) {
        if let Some((snapshot, transitions)) = inventory.changed(now) {
            self.samples.send_if_modified(|samples| {
                samples.retain(|id, _| snapshot.find(id.as_str()).is_some());
                false
            });
            self.snapshots.send_replace(snapshot);
            for transition in transitions {
                // Nobody need listen.
                let _ = self.transitions.send(transition);
            }
        }
        self.details.send_if_modified(|known| {
            let changed = !inventory.has_told(known);
            if changed {
                *known = Arc::new(inventory.details());
            }
            changed
        });
    }

    /// Has the inventory's state written, if it is another.
    fn keep(&self, inventory: &mut Inventory, now: Now) {
        if let Some(state) = inventory.checkpoint(now) {
            self.kept.send_replace(Some(Arc::new(state)));
        }
    }
}

// === impl Rules ===

impl Rules {
    /// The time between two looks at a device that comes back.
    fn spacing(&self) -> Duration {
        let share = self.health.hold_down / self.health.passes.max(1);
        share.max(TICK)
    }
}
