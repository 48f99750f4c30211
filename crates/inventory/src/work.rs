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

use crate::{
    Details, Draft, Keeping, Request, Rules, Samples, State,
    inventory::{ALL, Inventory},
    state::{Loaded, Reader},
};

/// How often verdicts that depend on time are looked at.
const TICK: Duration = Duration::from_secs(1);

/// How many changes of verdicts a listener may be behind.
const BACKLOG: usize = 256;

/// What the inventory hears of.
#[derive(Debug)]
pub struct Inlets<'a> {
    /// The config's rules, renewed by a reload.
    pub rules: watch::Receiver<Rules>,
    /// Reports, samples, check-ups and events of the probes.
    pub updates: &'a mut mpsc::Receiver<Update>,
    /// Changes that others ask for.
    pub requests: &'a mut mpsc::Receiver<Request>,
    /// The kernel's id of this boot.
    pub boot_id: String,
}

/// Whom the inventory tells. They outlive it.
#[derive(Clone, Debug)]
pub struct Outlets {
    /// The newest snapshot.
    pub snapshots: watch::Sender<Arc<Snapshot>>,
    /// Every sample as it comes, also those that change nothing.
    pub samples: watch::Sender<Samples>,
    /// What no probe looks at, by backend.
    pub released: watch::Sender<BTreeMap<String, Released>>,
    /// History and unsupported checks.
    pub details: watch::Sender<Arc<Details>>,
    /// Every change of a verdict, once.
    pub transitions: broadcast::Sender<Transition>,
    /// What is to outlive the agent.
    pub kept: watch::Sender<Draft>,
    /// How it goes with the file that has it.
    pub keeping: watch::Sender<Keeping>,
    /// Whether what an earlier agent kept was taken over, or cannot be had: nothing is looked at
    /// before.
    pub restored: watch::Sender<bool>,
    /// Orders to the supervisor.
    pub orders: Orders,
}

/// Takes in updates and publishes snapshots, until the updates end. A new config counts from the
/// moment it is there, for everything that was seen before too.
pub async fn run(inlets: Inlets<'_>, outlets: Outlets) {
    let Inlets {
        mut rules,
        updates,
        requests,
        boot_id,
    } = inlets;
    let started = Instant::now();
    let mut inventory = Inventory::new(&rules.borrow_and_update(), boot_id);
    let now = || Now {
        wall: Timestamp::now(),
        uptime: started.elapsed(),
    };
    let mut reader = Reader::default();
    outlets.turn_to(&mut reader, &rules.borrow());
    let loaded = reader.attempt().await;
    outlets.take_over(&mut inventory, loaded, now());
    outlets.restored.send_replace(true);
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
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
            Ok(()) = rules.changed() => {
                outlets.configure(&mut inventory, &mut reader, &rules.borrow_and_update());
            }
            loaded = reader.attempt(), if reader.is_pending() => {
                outlets.take_over(&mut inventory, loaded, now());
            }
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
        outlets.keep(&mut inventory, &reader, now());
        for done in done.drain(..) {
            let _ = done.send(());
        }
    }
}

// === impl Outlets ===

impl Outlets {
    /// Channels that nobody listens to yet.
    pub fn new(orders: Orders) -> Self {
        Self {
            snapshots: watch::Sender::new(Arc::new(Snapshot::empty(Timestamp::now()))),
            samples: watch::Sender::default(),
            released: watch::Sender::default(),
            details: watch::Sender::default(),
            transitions: broadcast::Sender::new(BACKLOG),
            kept: watch::Sender::default(),
            keeping: watch::Sender::default(),
            restored: watch::Sender::default(),
            orders,
        }
    }

    /// Has a new config count.
    fn configure(&self, inventory: &mut Inventory, reader: &mut Reader, rules: &Rules) {
        inventory.configure(rules);
        if reader.file() != rules.health.state_file.as_ref() {
            inventory.move_out();
            self.turn_to(reader, rules);
        }
    }

    /// Has another file used; nothing is written until what is in it is known.
    fn turn_to(&self, reader: &mut Reader, rules: &Rules) {
        let file = rules.health.state_file.clone();
        self.kept.send_modify(Draft::clear);
        let mut keeping = Keeping::new(file.clone());
        reader.turn_to(file);
        if !reader.is_pending() {
            keeping.read(None, self.kept.borrow().number);
        }
        self.keeping.send_replace(keeping);
    }

    /// Takes over what an earlier agent kept, once it is known.
    fn take_over(&self, inventory: &mut Inventory, loaded: Loaded, now: Now) {
        let problem = match loaded {
            Loaded::State(state) => {
                // A start of the node ends what an operator had.
                if inventory.is_of_this_boot(&state.health) {
                    self.hold(inventory, &state);
                }
                inventory.restore(*state, now);
                None
            }
            Loaded::Nothing => None,
            Loaded::Unread(problem) => Some(problem),
        };
        let draft = self.kept.borrow().number;
        self.keeping.send_if_modified(|keeping| {
            let before = keeping.clone();
            keeping.read(problem, draft);
            *keeping != before
        });
    }

    /// What an operator had when the agent ended is not touched by the next one either.
    fn hold(&self, inventory: &Inventory, state: &State) {
        let mine = |name: &str| inventory.has_released(name);
        for (name, until) in state.released.iter().filter(|(name, _)| !mine(name)) {
            let which = match name.as_str() {
                ALL => Some(Which::All),
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

    /// Has the inventory's state written, if it is another, and if what was in its file is known.
    fn keep(&self, inventory: &mut Inventory, reader: &Reader, now: Now) {
        let Some(file) = reader.file().filter(|_| !reader.is_pending()) else {
            return;
        };
        if let Some(state) = inventory.checkpoint(now) {
            self.kept
                .send_modify(|draft| draft.set(file.clone(), state));
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
