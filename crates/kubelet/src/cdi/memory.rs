//! Makes and keeps the specs: reads the names that pools and containers need, has the vendors make
//! the specs, and writes them to the disk.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use cdi::{
    CdiSpec, InUse, SpecKey, Store, StoreOutcome, SupportEvidence, WantedFile, store::WantedFiles,
};
use config::{Config, Handover, Pool, Selector};
use host::lane::{self, Lane};
use model::{Phase, Snapshot};
use pool::Offers;
use rules::{KindEdits, Rules, SpecRequest, SpecScope, Vendors};
use tokio::time::Instant;

use super::{
    CdiSettings, CdiStageStatus,
    gate::{KnownSupport, gate},
    held::{HeldNames, is_of, read_held_names},
    release,
};

/// Input of one round: the offers, and the data that their specs are made from.
#[derive(Debug)]
pub(super) struct RoundInput {
    pub(super) draft: Offers,
    /// Snapshot that the offers are made from, or the newest if there is no offer.
    pub(super) snapshot: Arc<Snapshot>,
    /// Config with the pools and the vendors' settings.
    pub(super) config: Arc<Config>,
}

/// State that is kept from one round to the next.
#[derive(Debug, Default)]
pub(super) struct SpecKeeper {
    /// Handovers that the pools use now.
    asked: Vec<PoolHandover>,
    /// Handovers that the pools used until a moment ago, each with the time of its end. A container
    /// may have been given such a name, and the kubelet has not yet written its checkpoint.
    faded: Vec<(PoolHandover, Instant)>,
    /// Files of the runtime and the kubelet as last read; `None` before the first successful read.
    around: Option<HostFacts>,
    /// Last job for the spec files, and its result.
    last: Option<(WantedFiles, StoreOutcome)>,
    /// Contents of the newest specs, for devices whose device nodes disappear.
    specs: Vec<KindEdits>,
    // Two lanes because the jobs have different results. While a job of one lane hangs, no job
    // starts in the other: it would hang on the same disk.
    /// Lane for jobs that read.
    pub(super) looking: Lane<(HostFacts, Option<Vec<CdiSpec>>)>,
    /// Lane for jobs that write.
    pub(super) settling: Lane<StoreOutcome>,
}

/// Handover of one pool, and the devices that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PoolHandover {
    /// Selectors of the pool.
    selectors: Vec<Selector>,
    handover: Handover,
}

/// Facts from files of the container runtime and the kubelet.
#[derive(Clone, Debug)]
pub(super) struct HostFacts {
    runtime: SupportEvidence,
    kubelet: SupportEvidence,
    /// Names in the kubelet's checkpoint, `None` if there is no checkpoint, or the reason why it
    /// cannot be read.
    held: Result<Option<HeldNames>, String>,
}

// === impl SpecKeeper ===

impl SpecKeeper {
    /// Takes the handovers of all pools. Those of before still count for the time `grace`.
    pub(super) fn set_asked<'a>(&mut self, all: impl Iterator<Item = &'a Pool>, grace: Duration) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.asked, all.map(PoolHandover::from).collect());
        self.faded.extend(before.into_iter().map(|old| (old, now)));
        let asked = &self.asked;
        self.faded
            .retain(|(old, since)| now < *since + grace && !asked.contains(old));
    }

    /// Writes the specs of one set of offers, and returns the offers that may go on. With `again`
    /// the disk is checked even if the specs are the same as before.
    pub(super) async fn round(
        &mut self,
        settings: &CdiSettings,
        round: &RoundInput,
        again: bool,
    ) -> (Offers, CdiStageStatus) {
        if again {
            self.read_host_facts(settings).await;
        }
        let (wanted, mut notes) = self.wanted(settings.vendors, round);
        let outcome = self.settle_on_disk(settings, wanted, again).await;
        let around = self.around.as_ref();
        let known = KnownSupport {
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
        let status = CdiStageStatus {
            dir: settings.cdi.dir.clone(),
            files: outcome.files,
            containers: around.map_or(0, HostFacts::container_count),
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
    async fn read_host_facts(&mut self, settings: &CdiSettings) {
        let CdiSettings {
            cdi: own,
            host_root,
            kubelet_dir,
            vendors,
            ..
        } = settings.clone();
        let kinds = list_kinds(vendors);
        let is_first = self.around.is_none();
        let look = move || {
            let around = HostFacts {
                runtime: cdi::find_runtime_support(&own, &host_root),
                kubelet: release::find_kubelet_support(&own, &kubelet_dir, &host_root),
                held: read_held_names(&kubelet_dir, &kinds),
            };
            (
                around,
                is_first.then(|| Store::new(own.dir).read_specs(&kinds)),
            )
        };
        let seen = match self.settling.is_busy() {
            true => Err(lane::Error::Late),
            false => self.looking.run_job(settings.limit, look).await,
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
    fn wanted(&mut self, vendors: Vendors, round: &RoundInput) -> (WantedFiles, Vec<String>) {
        let (mut files, mut notes) = (WantedFiles::new(), Vec::new());
        for rules in vendors.iter() {
            files.extend(self.wanted_of(rules, round, &mut notes));
        }
        (files, notes)
    }

    /// Decides the same for the kinds of one vendor.
    fn wanted_of(
        &mut self,
        rules: &dyn Rules,
        round: &RoundInput,
        notes: &mut Vec<String>,
    ) -> WantedFiles {
        let kinds = rules.vendor().cdi_kinds;
        let all = |wanted: WantedFile| {
            let keys = kinds.iter().map(|kind| SpecKey::of_kind(kind));
            keys.map(|key| (key, wanted.clone())).collect()
        };
        let Some(around) = &self.around else {
            // Nothing was read yet: the files and the containers that need them are unknown.
            return all(WantedFile::Unchanged);
        };
        let vendor = rules.vendor().name;
        let now = PoolHandover::of_vendor(self.asked.iter(), vendor);
        let lately = PoolHandover::of_vendor(self.faded.iter().map(|(old, _)| old), vendor);
        let is_asked = now.iter().any(Handover::may_use_cdi);
        let is_wanted = is_asked || lately.iter().any(Handover::may_use_cdi);
        let held = self.list_held_names(around, kinds);
        if !is_wanted && held.is_empty() {
            return all(WantedFile::Absent);
        }
        let backend = round.snapshot.find_backend(vendor);
        if backend.is_none_or(|backend| backend.phase != Phase::Running) {
            // Without a report of the probe no spec can be made. The file on the disk may be right,
            // and containers that restart now need it.
            return all(WantedFile::Unchanged);
        }
        let made = rules.make_specs(&SpecRequest {
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
                return all(WantedFile::Unchanged);
            }
        };
        notes.extend(made.notes);
        self.specs
            .retain(|spec| !kinds.contains(&spec.kind.as_str()));
        let made: Vec<CdiSpec> = made.specs.into_iter().map(CdiSpec::from).collect();
        self.specs.extend(made.iter().cloned().map(KindEdits::from));
        let want = if is_wanted {
            WantedFile::Spec
        } else {
            WantedFile::Held
        };
        let wanted = kinds.iter().map(|kind| {
            let spec = made.iter().find(|spec| spec.kind == *kind);
            let spec = spec.map(|spec| want(Arc::new(spec.clone())));
            (SpecKey::of_kind(kind), spec.unwrap_or(WantedFile::Absent))
        });
        wanted.collect()
    }

    /// Names of these kinds that containers may have been started with.
    fn list_held_names(&self, around: &HostFacts, kinds: &[&str]) -> BTreeSet<String> {
        let is_ours = |name: &String| is_of(name, kinds);
        match &around.held {
            Ok(Some(held)) => held.names.iter().filter(|n| is_ours(n)).cloned().collect(),
            // Without a checkpoint any name may be in use.
            Ok(None) | Err(_) => {
                let names = self.specs.iter().flat_map(KindEdits::qualified_names);
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
    pub(super) async fn settle_on_disk(
        &mut self,
        settings: &CdiSettings,
        wanted: WantedFiles,
        again: bool,
    ) -> StoreOutcome {
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
        let settle = move || store.settle_files(&asked, &in_use);
        let settled = match self.looking.is_busy() {
            true => Err(lane::Error::Late),
            false => self.settling.run_job(settings.limit, settle).await,
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

// === impl PoolHandover ===

impl PoolHandover {
    /// Handovers of the pools whose selectors may take devices of the vendor.
    fn of_vendor<'a>(all: impl Iterator<Item = &'a Self>, vendor: &str) -> Vec<Handover> {
        let own = all.filter(|asked| pool::may_take(&asked.selectors, vendor));
        own.map(|asked| asked.handover.clone()).collect()
    }
}

impl From<&Pool> for PoolHandover {
    fn from(pool: &Pool) -> Self {
        Self {
            selectors: pool.selectors.clone(),
            handover: pool.handover.clone(),
        }
    }
}

// === impl HostFacts ===

impl HostFacts {
    fn container_count(&self) -> usize {
        let held = self.held.as_ref().ok().and_then(Option::as_ref);
        held.map_or(0, |held| held.containers)
    }
}

/// CDI kinds of all vendors.
fn list_kinds(vendors: Vendors) -> Vec<&'static str> {
    let vendors = vendors.iter().map(Rules::vendor);
    vendors
        .flat_map(|vendor| vendor.cdi_kinds)
        .copied()
        .collect()
}

/// Describes for an operator why a job on the disk has no result.
fn disk_problem(settings: &CdiSettings, error: &lane::Error) -> String {
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

    fn listed_pool(list: config::ListStrategy) -> Pool {
        nvidia_rules::sample::listed_pool(&[list])
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_counts_until_the_kubelet_wrote_it_down() {
        let (by_name, other) = (listed_pool(CdiCri), listed_pool(Envvar));
        let mut memory = SpecKeeper::default();
        memory.set_asked([&by_name].into_iter(), GRACE);
        tokio::time::advance(GRACE * 2).await;
        memory.set_asked([&other].into_iter(), GRACE);
        assert_eq!(memory.faded.len(), 1);
        tokio::time::advance(GRACE).await;
        memory.set_asked([&other].into_iter(), GRACE);
        assert!(memory.faded.is_empty());
    }

    #[test]
    fn a_vendor_is_told_of_the_pools_that_may_take_its_devices() {
        let of = |vendor: &[&str]| PoolHandover {
            selectors: vec![Selector {
                vendor: vendor.iter().map(|name| (*name).to_owned()).collect(),
                ..Selector::default()
            }],
            handover: listed_pool(CdiCri).handover,
        };
        let all = [
            of(&[]),
            of(&["nvidia"]),
            of(&["amd"]),
            of(&["*"]),
            of(&["amd", "n*"]),
        ];
        assert_eq!(PoolHandover::of_vendor(all.iter(), "nvidia").len(), 4);
        assert_eq!(PoolHandover::of_vendor(all.iter(), "intel").len(), 2);
    }
}
