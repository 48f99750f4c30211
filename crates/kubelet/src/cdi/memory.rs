//! One round after the other: what is asked for, what is around, what is on the disk.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cdi::{Evidence, InUse, Key, Outcome, Spec, Store, Wanted, store::Wishes};
use config::{Config, Handover, Pool, Selector};
use host::lane::{self, Lane};
use model::{Phase, Snapshot};
use pool::Offers;
use rules::{KindEdits, Rules, SpecRequest, SpecScope, Vendors};
use tokio::time::Instant;

use super::{
    Settings, Status,
    gate::{Known, gate},
    held::{Held, held, is_of},
    release,
};

/// What a round is about.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) draft: Offers,
    /// The one that the draft is made of, or the newest.
    pub(super) snapshot: Arc<Snapshot>,
    /// The config that the pools and the vendors' settings are of.
    pub(super) config: Arc<Config>,
}

/// The files as they were left, and what else was last known.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What pools ask for.
    asked: Vec<Asked>,
    /// What they asked for until a moment ago: a container may have been given it of which the
    /// kubelet has not written that down yet.
    faded: Vec<(Asked, Instant)>,
    /// What others keep on the disk; nothing before it was seen once.
    around: Option<Around>,
    /// What was last asked of the disk, and what came of it.
    last: Option<(Wishes, Outcome)>,
    /// The contents of the newest specs, for devices whose nodes vanish.
    specs: Vec<KindEdits>,
    /// Work on the disk: while a job of one lane hangs, none is begun in the other either.
    pub(super) looking: Lane<(Around, Option<Vec<Spec>>)>,
    pub(super) settling: Lane<Outcome>,
}

/// What one pool asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    /// The devices that the pool takes.
    selectors: Vec<Selector>,
    handover: Handover,
}

/// What others keep on the disk.
#[derive(Clone, Debug)]
pub(super) struct Around {
    runtime: Evidence,
    kubelet: Evidence,
    /// What containers hold, if there is a record of it, or why it is not understood.
    held: Result<Option<Held>, String>,
}

// === impl Memory ===

impl Memory {
    /// Notes what is asked for now. What was asked for before counts for a while.
    pub(super) fn ask<'a>(&mut self, all: impl Iterator<Item = &'a Pool>, grace: Duration) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.asked, all.map(Asked::from).collect());
        self.faded.extend(before.into_iter().map(|old| (old, now)));
        let asked = &self.asked;
        self.faded
            .retain(|(old, since)| now < *since + grace && !asked.contains(old));
    }

    /// One set of offers: the specs to the disk, then the offers with what is there. `again`: look
    /// at the disk even if the specs are the same.
    pub(super) async fn round(
        &mut self,
        settings: &Settings,
        round: &Round,
        again: bool,
    ) -> (Offers, Status) {
        if again {
            self.look(settings).await;
        }
        let (wanted, mut notes) = self.wanted(settings.vendors, round);
        let outcome = self.settle(settings, wanted, again).await;
        let around = self.around.as_ref();
        let known = Known {
            runtime: around.map(|it| it.runtime.clone()).unwrap_or_default(),
            kubelet: around.map(|it| it.kubelet.clone()).unwrap_or_default(),
        };
        let (offers, lists) = gate(&round.draft, &outcome, &known);
        if let Some(Err(why)) = around.map(|it| &it.held) {
            notes.push(format!(
                "{why}; which names containers were started with is not known, so all that are in \
                 specs stay"
            ));
        }
        let status = Status {
            dir: settings.cdi.dir.clone(),
            files: outcome.files,
            containers: around.map_or(0, Around::containers),
            notes,
            runtime: known.runtime,
            kubelet: known.kubelet,
            lists,
        };
        (offers, status)
    }

    /// Looks at what others keep on the disk, and the first time at what an agent before this one left.
    /// If that does not answer, the runtime is as it was last seen.
    async fn look(&mut self, settings: &Settings) {
        let Settings {
            cdi: own,
            host_root,
            kubelet_dir,
            vendors,
            ..
        } = settings.clone();
        let kinds = kinds(vendors);
        let is_first = self.around.is_none();
        let look = move || {
            let around = Around {
                runtime: cdi::evidence(&own, &host_root),
                kubelet: release::evidence(&own, &kubelet_dir, &host_root),
                held: held(&kubelet_dir, &kinds),
            };
            (around, is_first.then(|| Store::new(own.dir).read(&kinds)))
        };
        let seen = match self.settling.is_busy() {
            true => Err(lane::Error::Late),
            false => self.looking.run(settings.limit, look).await,
        };
        let seen = seen.map_err(|error| disk_problem(settings, &error));
        match (seen, &mut self.around) {
            (Ok((around, left)), _) => {
                self.around = Some(around);
                let left = left.into_iter().flatten();
                self.specs.extend(left.map(KindEdits::from));
            }
            (Err(why), Some(around)) => around.held = Err(why),
            (Err(_), None) => {}
        }
    }

    /// The fate of the file of each kind.
    fn wanted(&mut self, vendors: Vendors, round: &Round) -> (Wishes, Vec<String>) {
        let (mut files, mut notes) = (Wishes::new(), Vec::new());
        for rules in vendors.iter() {
            files.extend(self.wanted_of(rules, round, &mut notes));
        }
        (files, notes)
    }

    /// The fate of the files of a vendor.
    fn wanted_of(&mut self, rules: &dyn Rules, round: &Round, notes: &mut Vec<String>) -> Wishes {
        let kinds = rules.vendor().cdi_kinds;
        let all = |wanted: Wanted| {
            let keys = kinds.iter().map(|kind| Key::of_kind(kind));
            keys.map(|key| (key, wanted.clone())).collect()
        };
        let Some(around) = &self.around else {
            // What is there, and who needs it, is not known.
            return all(Wanted::AsItIs);
        };
        let vendor = rules.vendor().name;
        let now = Asked::of_vendor(self.asked.iter(), vendor);
        let lately = Asked::of_vendor(self.faded.iter().map(|(old, _)| old), vendor);
        let is_asked = now.iter().any(Handover::may_use_cdi);
        let is_wanted = is_asked || lately.iter().any(Handover::may_use_cdi);
        let held = self.names(around, kinds);
        if !is_wanted && held.is_empty() {
            return all(Wanted::Nothing);
        }
        let backend = round.snapshot.backend(vendor);
        if backend.is_none_or(|backend| backend.phase != Phase::Running) {
            // What is there may be right, and containers restart meanwhile.
            return all(Wanted::AsItIs);
        }
        let made = rules.specs(&SpecRequest {
            snapshot: &round.snapshot,
            settings: &round.config.backends,
            scope: SpecScope::Asked {
                now: &now,
                lately: &lately,
                held: &held,
            },
            previous: &self.specs,
        });
        let made = match made {
            Ok(made) => made,
            // For containers of before they are made when they can be.
            Err(why) => {
                notes.extend(is_asked.then_some(why));
                return all(Wanted::AsItIs);
            }
        };
        notes.extend(made.notes);
        self.specs
            .retain(|spec| !kinds.contains(&spec.kind.as_str()));
        let made: Vec<Spec> = made.specs.into_iter().map(Spec::from).collect();
        self.specs.extend(made.iter().cloned().map(KindEdits::from));
        let want = if is_wanted {
            Wanted::Spec
        } else {
            Wanted::Held
        };
        let wanted = kinds.iter().map(|kind| {
            let spec = made.iter().find(|spec| spec.kind == *kind);
            let spec = spec.map(|spec| want(Arc::new(spec.clone())));
            (Key::of_kind(kind), spec.unwrap_or(Wanted::Nothing))
        });
        wanted.collect()
    }

    /// The names of these kinds that containers may have been started with.
    fn names(&self, around: &Around, kinds: &[&str]) -> BTreeSet<String> {
        let is_ours = |name: &String| is_of(name, kinds);
        match &around.held {
            Ok(Some(held)) => held.names.iter().filter(|n| is_ours(n)).cloned().collect(),
            // Without a record any name may be in use.
            Ok(None) | Err(_) => {
                let names = self.specs.iter().flat_map(KindEdits::names);
                names.filter(is_ours).collect()
            }
        }
    }

    /// The names that containers were started with, as far as there is a record.
    fn in_use(&self) -> InUse {
        match self.around.as_ref().map(|around| &around.held) {
            Some(Ok(Some(held))) => InUse::Names(held.names.clone()),
            Some(Ok(None) | Err(_)) | None => InUse::Unknown,
        }
    }

    /// Makes the disk so, unless it was so when it was last looked at.
    pub(super) async fn settle(
        &mut self,
        settings: &Settings,
        wanted: Wishes,
        again: bool,
    ) -> Outcome {
        let known = self.last.as_ref().filter(|(last, outcome)| {
            // What failed is tried again with every round that looks.
            !again && *last == wanted && !outcome.late
        });
        if let Some((_, outcome)) = known {
            return outcome.clone();
        }
        let (store, asked) = (Store::new(&settings.cdi.dir), wanted.clone());
        let in_use = self.in_use();
        let settle = move || store.settle(&asked, &in_use);
        let settled = match self.looking.is_busy() {
            true => Err(lane::Error::Late),
            false => self.settling.run(settings.limit, settle).await,
        };
        let outcome = match settled {
            Ok(outcome) => outcome,
            Err(error) => {
                // Names that were on the disk are taken to be there still.
                let last = self.last.take().map(|(_, outcome)| outcome);
                let last = last.unwrap_or_default();
                last.with_problem(&settings.cdi.dir, &wanted, disk_problem(settings, &error))
            }
        };
        self.last = Some((wanted, outcome.clone()));
        outcome
    }
}

// === impl Asked ===

impl Asked {
    /// The handovers of those that may take devices of a vendor: what the others ask for is not for it.
    fn of_vendor<'a>(all: impl Iterator<Item = &'a Self>, vendor: &str) -> Vec<Handover> {
        let own = all.filter(|asked| pool::may_take(&asked.selectors, vendor));
        own.map(|asked| asked.handover.clone()).collect()
    }
}

impl From<&Pool> for Asked {
    fn from(pool: &Pool) -> Self {
        Self {
            selectors: pool.selectors.clone(),
            handover: pool.handover.clone(),
        }
    }
}

// === impl Around ===

impl Around {
    fn containers(&self) -> usize {
        let held = self.held.as_ref().ok().and_then(Option::as_ref);
        held.map_or(0, |held| held.containers)
    }
}

/// The kinds of all vendors.
fn kinds(vendors: Vendors) -> Vec<&'static str> {
    let vendors = vendors.iter().map(Rules::vendor);
    vendors
        .flat_map(|vendor| vendor.cdi_kinds)
        .copied()
        .collect()
}

/// Why work on the disk has no result, for a person.
fn disk_problem(settings: &Settings, error: &lane::Error) -> String {
    let dir = settings.cdi.dir.display();
    match error {
        lane::Error::Late => format!(
            "the disk does not answer within {} s; what CDI specs are in {dir} now is not known",
            settings.limit.as_secs()
        ),
        lane::Error::Broken(error) => {
            format!("the work on the CDI specs in {dir} broke off: {error}; please report it")
        }
    }
}

#[cfg(test)]
mod tests {
    use config::ListStrategy::{CdiCri, Envvar};

    use super::*;

    const GRACE: Duration = Duration::from_secs(20);

    fn pool(list: config::ListStrategy) -> Pool {
        nvidia_rules::sample::listed(&[list])
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_counts_until_the_kubelet_wrote_it_down() {
        let (by_name, other) = (pool(CdiCri), pool(Envvar));
        let mut memory = Memory::default();
        memory.ask([&by_name].into_iter(), GRACE);
        tokio::time::advance(GRACE * 2).await;
        memory.ask([&other].into_iter(), GRACE);
        assert_eq!(memory.faded.len(), 1);
        tokio::time::advance(GRACE).await;
        memory.ask([&other].into_iter(), GRACE);
        assert!(memory.faded.is_empty());
    }

    #[test]
    fn a_vendor_is_told_of_the_pools_that_may_take_its_devices() {
        let of = |vendor: &[&str]| Asked {
            selectors: vec![Selector {
                vendor: vendor.iter().map(|name| (*name).to_owned()).collect(),
                ..Selector::default()
            }],
            handover: pool(CdiCri).handover,
        };
        let all = [
            of(&[]),
            of(&["nvidia"]),
            of(&["amd"]),
            of(&["*"]),
            of(&["amd", "n*"]),
        ];
        assert_eq!(Asked::of_vendor(all.iter(), "nvidia").len(), 4);
        assert_eq!(Asked::of_vendor(all.iter(), "intel").len(), 2);
    }
}
