//! Makes and keeps the specs: reads the names that pools and containers need, has the vendors make
//! the specs, and writes them to the disk.

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

/// Input of one round: the offers, and the data that their specs are made from.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) draft: Offers,
    /// Snapshot that the offers are made from, or the newest if there is no offer.
    pub(super) snapshot: Arc<Snapshot>,
    /// Config with the pools and the vendors' settings.
    pub(super) config: Arc<Config>,
}

/// State that is kept from one round to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Handovers that the pools use now.
    asked: Vec<Asked>,
    /// Handovers that the pools used until a moment ago, each with the time of its end. A container
    /// may have been given such a name, and the kubelet has not yet written its checkpoint.
    faded: Vec<(Asked, Instant)>,
    /// Files of the runtime and the kubelet as last read; `None` before the first successful read.
    around: Option<Around>,
    /// Last job for the spec files, and its result.
    last: Option<(Wishes, Outcome)>,
    /// Contents of the newest specs, for devices whose device nodes disappear.
    specs: Vec<KindEdits>,
    // Two lanes because the jobs have different results. While a job of one lane hangs, no job
    // starts in the other: it would hang on the same disk.
    /// Lane for jobs that read.
    pub(super) looking: Lane<(Around, Option<Vec<Spec>>)>,
    /// Lane for jobs that write.
    pub(super) settling: Lane<Outcome>,
}

/// Handover of one pool, and the devices that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    /// Selectors of the pool.
    selectors: Vec<Selector>,
    handover: Handover,
}

/// Facts from files of the container runtime and the kubelet.
#[derive(Clone, Debug)]
pub(super) struct Around {
    runtime: Evidence,
    kubelet: Evidence,
    /// Names in the kubelet's checkpoint, `None` if there is no checkpoint, or the reason why it
    /// cannot be read.
    held: Result<Option<Held>, String>,
}

// === impl Memory ===

impl Memory {
    /// Takes the handovers of all pools. Those of before still count for the time `grace`.
    pub(super) fn ask<'a>(&mut self, all: impl Iterator<Item = &'a Pool>, grace: Duration) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.asked, all.map(Asked::from).collect());
        self.faded.extend(before.into_iter().map(|old| (old, now)));
        let asked = &self.asked;
        self.faded
            .retain(|(old, since)| now < *since + grace && !asked.contains(old));
    }

    /// Writes the specs of one set of offers, and returns the offers that may go on. With `again`
    /// the disk is checked even if the specs are the same as before.
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

    /// Reads the files of the runtime and the kubelet, and the first time also the specs that an
    /// earlier agent left. If the disk does not answer in time, the last facts stay in force, but
    /// the names that containers hold count as unknown.
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

    /// Decides for the file of each kind if it is written, kept or removed. Returns notes for the
    /// operator too.
    fn wanted(&mut self, vendors: Vendors, round: &Round) -> (Wishes, Vec<String>) {
        let (mut files, mut notes) = (Wishes::new(), Vec::new());
        for rules in vendors.iter() {
            files.extend(self.wanted_of(rules, round, &mut notes));
        }
        (files, notes)
    }

    /// Decides the same for the kinds of one vendor.
    fn wanted_of(&mut self, rules: &dyn Rules, round: &Round, notes: &mut Vec<String>) -> Wishes {
        let kinds = rules.vendor().cdi_kinds;
        let all = |wanted: Wanted| {
            let keys = kinds.iter().map(|kind| Key::of_kind(kind));
            keys.map(|key| (key, wanted.clone())).collect()
        };
        let Some(around) = &self.around else {
            // Nothing was read yet: the files and the containers that need them are unknown.
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
            // Without a report of the probe no spec can be made. The file on the disk may be right,
            // and containers that restart now need it.
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
            // The reason is reported only if a pool uses CDI now. Specs that only running
            // containers need are made as soon as that is possible.
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

    /// Names of these kinds that containers may have been started with.
    fn names(&self, around: &Around, kinds: &[&str]) -> BTreeSet<String> {
        let is_ours = |name: &String| is_of(name, kinds);
        match &around.held {
            Ok(Some(held)) => held.names.iter().filter(|n| is_ours(n)).cloned().collect(),
            // Without a checkpoint any name may be in use.
            Ok(None) | Err(_) => {
                let names = self.specs.iter().flat_map(KindEdits::names);
                names.filter(is_ours).collect()
            }
        }
    }

    /// Names that containers were started with, or `Unknown` without a checkpoint.
    fn in_use(&self) -> InUse {
        match self.around.as_ref().map(|around| &around.held) {
            Some(Ok(Some(held))) => InUse::Names(held.names.clone()),
            Some(Ok(None) | Err(_)) | None => InUse::Unknown,
        }
    }

    /// Brings the spec files on the disk into the wanted state. Without `again` nothing is done if
    /// the same was asked last time.
    pub(super) async fn settle(
        &mut self,
        settings: &Settings,
        wanted: Wishes,
        again: bool,
    ) -> Outcome {
        let known = self.last.as_ref().filter(|(last, outcome)| {
            // A failure of the disk is tried again only in rounds with `again`, that is, at most
            // once per check. A result that came too late is asked for again at once.
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
                // The disk did not answer. Names that were on it before count as present: to mark
                // their units as Unhealthy would take devices away that still work.
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
    /// Handovers of the pools whose selectors may take devices of the vendor.
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

/// CDI kinds of all vendors.
fn kinds(vendors: Vendors) -> Vec<&'static str> {
    let vendors = vendors.iter().map(Rules::vendor);
    vendors
        .flat_map(|vendor| vendor.cdi_kinds)
        .copied()
        .collect()
}

/// Describes for an operator why a job on the disk has no result.
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
