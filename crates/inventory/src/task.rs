//! The task that owns the inventory: takes in its inputs, and publishes.

use std::{sync::Arc, time::Duration};

use health::{HealthPolicy, Now};
use jiff::Timestamp;
use probe::{
    Update,
    supervisor::{OrdersByBackend, ReleaseScope},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, MissedTickBehavior, interval},
};

use crate::{
    ChangeRequest, Published, SavedState, StateDraft, StateFileStatus,
    inventory::{ALL, Inventory},
    state::{LoadedState, StateReader},
};

/// Period in which verdicts that depend on time are made again.
const TICK: Duration = Duration::from_secs(1);

/// Inputs of the inventory.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// Rules for verdicts; changed by a reload of the config.
    pub policy: watch::Receiver<HealthPolicy>,
    /// Merged reports, samples, check-ups and events of the probes.
    pub updates: &'a mut mpsc::Receiver<Update>,
    /// Changes that other parts request.
    pub requests: &'a mut mpsc::Receiver<ChangeRequest>,
    /// Orders to the supervisors of the probes, for looks and releases.
    pub orders: OrdersByBackend,
    /// The kernel's id of this boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
}

/// Runs the inventory until the channel of updates closes. A new config takes effect at once, also
/// for earlier observations.
pub async fn run_inventory(inputs: Inputs<'_>, published: Published) {
    let Inputs {
        mut policy,
        updates,
        requests,
        orders,
        boot_id,
    } = inputs;
    let started = Instant::now();
    let mut inventory = Inventory::new(&policy.borrow_and_update(), boot_id);
    let now = || Now {
        wall: Timestamp::now(),
        uptime: started.elapsed(),
    };
    let mut reader = StateReader::default();
    published.turn_to(&mut reader, &policy.borrow());
    let loaded = reader.try_read().await;
    published.take_over(&mut inventory, loaded, &orders, now());
    published.restored.send_replace(true);
    let mut tick = interval(TICK);
    // After a stall one tick is enough: each one looks at the present time. The default of tokio
    // would make up for all that were missed.
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = Instant::now();
    let mut done: Vec<oneshot::Sender<()>> = Vec::new();
    loop {
        tokio::select! {
            update = updates.recv() => match update {
                Some(update) => published.forward_update(&mut inventory, update, now()),
                None => return,
            },
            Some(request) = requests.recv() => {
                inventory.apply_change(&request.change, now());
                done.push(request.done);
            }
            Ok(()) = policy.changed() => {
                published.apply_policy(&mut inventory, &mut reader, &policy.borrow_and_update());
            }
            loaded = reader.try_read(), if reader.is_pending() => {
                published.take_over(&mut inventory, loaded, &orders, now());
            }
            _ = tick.tick() => {
                let spacing = spacing(&policy.borrow());
                // The next regular look may be later than the end of the hold-down
                // (`probe.period`).
                let wanting = inventory.wanting_look(now());
                if !wanting.is_empty() && looked.elapsed() >= spacing {
                    looked = Instant::now();
                    for backend in wanting {
                        orders.orders_of(backend).request_refresh();
                    }
                }
            }
        }
        // Updates that are there already go into one snapshot, so that readers see fewer
        // intermediate states.
        while let Ok(update) = updates.try_recv() {
            published.forward_update(&mut inventory, update, now());
        }
        // Verdicts go out before the state is saved: they must not wait for the disk.
        published.publish_news(&mut inventory, now());
        published.draft_changes(&mut inventory, &reader, now());
        // After publishing, so that the caller can read the effect of its request.
        for done in done.drain(..) {
            let _ = done.send(());
        }
    }
}

// === impl Published ===

impl Published {
    /// Applies a new policy; another path of the state file takes effect, too.
    fn apply_policy(
        &self,
        inventory: &mut Inventory,
        reader: &mut StateReader,
        policy: &HealthPolicy,
    ) {
        inventory.set_policy(policy);
        if reader.state_path() != policy.health.state_file.as_ref() {
            inventory.move_out();
            self.turn_to(reader, policy);
        }
    }

    /// Switches to another state file. Nothing is written before the file was read: that would
    /// overwrite the state of an earlier agent.
    fn turn_to(&self, reader: &mut StateReader, policy: &HealthPolicy) {
        let file = policy.health.state_file.clone();
        self.drafts.send_modify(StateDraft::drop_state);
        let mut keeping = StateFileStatus::new(file.clone());
        reader.turn_to(file);
        if !reader.is_pending() {
            keeping.record_read(None, self.drafts.borrow().number);
        }
        self.keeping.send_replace(keeping);
    }

    /// Takes over the result of reading the state file.
    fn take_over(
        &self,
        inventory: &mut Inventory,
        loaded: LoadedState,
        orders: &OrdersByBackend,
        now: Now,
    ) {
        let problem = match loaded {
            LoadedState::State(state) => {
                // A reboot ends all releases.
                if inventory.is_of_this_boot(&state.health) {
                    repeat_releases(orders, inventory, &state);
                }
                inventory.restore_state(*state, now);
                None
            }
            LoadedState::NoState => None,
            LoadedState::Unread(problem) => Some(problem),
        };
        let draft = self.drafts.borrow().number;
        self.keeping.send_if_modified(|keeping| {
            let before = keeping.clone();
            keeping.record_read(problem, draft);
            *keeping != before
        });
    }

    /// Passes an update to the inventory, and publishes samples and releases, which are not in
    /// snapshots. A sample of an unknown device, or of another backend's device, is dropped.
    fn forward_update(&self, inventory: &mut Inventory, update: Update, now: Now) {
        match &update {
            Update::State(sighting) => {
                let (name, released) = (&sighting.backend.name, &sighting.released);
                self.released.send_if_modified(|known| {
                    let before = known.insert(name.clone(), released.clone());
                    let changed = before.as_ref() != Some(released);
                    inventory.note_release(changed);
                    changed
                });
            }
            Update::Sample { backend, sample } if inventory.has_device(backend, &sample.device) => {
                self.samples.send_modify(|samples| {
                    samples.insert(&sample.device, sample.telemetry.clone());
                });
            }
            Update::Retired(backend) => {
                self.released
                    .send_if_modified(|known| known.remove(backend).is_some());
            }
            Update::Sample { .. }
            | Update::Checkup { .. }
            | Update::Event { .. }
            | Update::Count { .. } => {}
        }
        inventory.apply_update(update, now);
    }

    /// Publishes a new snapshot and new details, if they differ.
    fn publish_news(&self, inventory: &mut Inventory, now: Now) {
        if let Some(snapshot) = inventory.next_snapshot(now) {
            self.samples.send_if_modified(|samples| {
                // Removed devices need no wake-up of the readers of samples: the snapshot tells
                // them.
                samples.retain(|id| snapshot.find_entry(id.as_str()).is_some());
                false
            });
            self.snapshots.send_replace(snapshot);
        }
        self.details.send_if_modified(|known| {
            let changed = !inventory.has_told(known);
            if changed {
                *known = Arc::new(inventory.build_details());
            }
            changed
        });
    }

    /// Publishes the state for the state file if it changed. Not before the old file was read.
    fn draft_changes(&self, inventory: &mut Inventory, reader: &StateReader, now: Now) {
        let Some(file) = reader.state_path().filter(|_| !reader.is_pending()) else {
            return;
        };
        if let Some(state) = inventory.checkpoint(now) {
            self.drafts
                .send_modify(|draft| draft.replace_state(file.clone(), state));
        }
    }
}

/// Returns the time between two extra looks at a device that recovers: at least one tick.
fn spacing(policy: &HealthPolicy) -> Duration {
    let share = policy.health.hold_down / policy.health.passes.max(1);
    share.max(TICK)
}

/// Repeats the releases that were in force when the last agent ended.
fn repeat_releases(orders: &OrdersByBackend, inventory: &Inventory, state: &SavedState) {
    let releases = state.releases.iter().flat_map(|(backend, releases)| {
        let releases = releases.iter();
        releases.map(move |(name, until)| (backend, name, until))
    });
    let mine = |backend: &str, name: &str| inventory.has_released(backend, name);
    for (backend, name, until) in releases.filter(|(backend, name, _)| !mine(backend, name)) {
        let which = match name.as_str() {
            ALL => Some(ReleaseScope::All),
            card => card.parse().ok().map(ReleaseScope::Card),
        };
        let left = Duration::try_from(until.duration_since(Timestamp::now())).ok();
        if let (Some(which), Some(left)) = (which, left.filter(|left| !left.is_zero())) {
            tracing::info!(backend, released = name, %until, "released before the agent started");
            orders.release_cards(backend, which, left);
        }
    }
}
