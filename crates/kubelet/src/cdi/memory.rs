//! One round after the other: what is asked for, what is around, what is on the disk.

use std::{sync::Arc, time::Duration};

use config::{Handover, NvidiaHandover};
use grant::cdi::{CLASSES, Spec, Wish, specs};
use host::lane::{self, Lane};
use model::{Phase, Snapshot};
use pool::Offers;
use tokio::time::Instant;

use super::{
    Evidence, Settings, Status,
    caller::kubelet,
    folder::{Outcome, Wanted, read, sync},
    gate::{Known, gate},
    held::{Held, handovers, held},
    runtime::evidence,
};

/// The vendor whose devices have specs.
pub(super) const VENDOR: &str = "nvidia";

/// What a round is about.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) draft: Offers,
    /// The one that the draft is made of, or the newest.
    pub(super) snapshot: Arc<Snapshot>,
    /// What the kubelet's calls say of it.
    pub(super) caller: Option<String>,
}

/// The files as they were left, and what else was last known.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What pools ask for.
    asked: Vec<Handover>,
    /// What they asked for until a moment ago: a container may have been given it of which the
    /// kubelet has not written that down yet.
    faded: Vec<(Handover, Instant)>,
    /// What others keep on the disk; nothing before it was seen once.
    around: Option<Around>,
    /// What was last asked of the disk, and what came of it.
    last: Option<(Vec<Wanted>, Outcome)>,
    /// The newest specs, for devices whose nodes vanish.
    specs: Vec<Spec>,
    /// Work on the disk: while a job of one lane hangs, none is begun in the other either.
    pub(super) looking: Lane<(Around, Option<Vec<Spec>>)>,
    pub(super) settling: Lane<Outcome>,
}

/// What others keep on the disk.
#[derive(Clone, Debug)]
pub(super) struct Around {
    runtime: Evidence,
    /// What containers hold, if there is a record of it, or why it is not understood.
    held: Result<Option<Held>, String>,
}

// === impl Memory ===

impl Memory {
    /// Notes what is asked for now. What was asked for before counts for a while.
    pub(super) fn ask<'a>(&mut self, all: impl Iterator<Item = &'a Handover>, grace: Duration) {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.asked, all.cloned().collect());
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
        let (wanted, mut notes) = self.wanted(settings, &round.snapshot);
        let outcome = self.settle(settings, wanted, again).await;
        let around = self.around.as_ref();
        let known = Known {
            runtime: around.map(|it| it.runtime.clone()).unwrap_or_default(),
            kubelet: kubelet(&settings.cdi, round.caller.as_deref()),
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
            cdi,
            host_root,
            kubelet_dir,
            ..
        } = settings.clone();
        let is_first = self.around.is_none();
        let look = move || {
            let around = Around {
                runtime: evidence(&cdi, &host_root),
                held: held(&kubelet_dir),
            };
            (around, is_first.then(|| read(&cdi.dir)))
        };
        let seen = match self.settling.is_busy() {
            true => Err(lane::Error::Late),
            false => self.looking.run(settings.limit, look).await,
        };
        let seen = seen.map_err(|error| disk_problem(settings, &error));
        match (seen, &mut self.around) {
            (Ok((around, left)), _) => {
                self.around = Some(around);
                self.specs.extend(left.into_iter().flatten());
            }
            (Err(why), Some(around)) => around.held = Err(why),
            (Err(_), None) => {}
        }
    }

    /// What specs are to have: what is asked for, and what containers were started with.
    fn wish(&self, around: &Around) -> Option<Wish> {
        let names = match &around.held {
            Ok(Some(held)) => held.names.clone(),
            // Without a record any name may be in use.
            Ok(None) | Err(_) => self.specs.iter().flat_map(Spec::names).collect(),
        };
        let held = handovers(&names);
        let faded = self.faded.iter().map(|(old, _)| old);
        // Where device nodes are is for those to say who ask now.
        let mut asked = self.asked.iter();
        let root = asked.find(|handover| Wish::of([*handover]).is_some());
        let root = root.or(self.asked.first());
        let root = root.map_or_else(
            || Handover::default().nvidia.dev_root,
            |h| h.nvidia.dev_root.clone(),
        );
        let others = faded.chain(&held).map(|handover| Handover {
            nvidia: NvidiaHandover {
                dev_root: root.clone(),
                ..handover.nvidia.clone()
            },
            ..handover.clone()
        });
        let others: Vec<Handover> = others.collect();
        Wish::of(self.asked.iter().chain(&others))
    }

    /// What is to become of the file of each class.
    fn wanted(&mut self, settings: &Settings, snapshot: &Snapshot) -> (Vec<Wanted>, Vec<String>) {
        let Some(around) = &self.around else {
            // What is there, and who needs it, is not known.
            return (vec![Wanted::AsItIs; CLASSES.len()], Vec::new());
        };
        let Some(wish) = self.wish(around) else {
            return (vec![Wanted::Nothing; CLASSES.len()], Vec::new());
        };
        let mut backends = snapshot.backends.iter();
        let backend = backends.find(|b| b.name == VENDOR && b.phase == Phase::Running);
        let Some(backend) = backend else {
            // What is there may be right, and containers restart meanwhile.
            return (vec![Wanted::AsItIs; CLASSES.len()], Vec::new());
        };
        if backend.extras.files.is_none() {
            let note = "the probe has not told of the driver's files, so specs are not made";
            // For containers of before they are made when it does.
            let asked = Wish::of(&self.asked).is_some();
            let notes = asked.then(|| note.to_owned());
            return (
                vec![Wanted::AsItIs; CLASSES.len()],
                notes.into_iter().collect(),
            );
        }
        let made = specs(snapshot, &wish, &settings.cdi, &self.specs);
        self.specs = made.specs;
        let faded = self.faded.iter().map(|(old, _)| old);
        let want = match Wish::of(self.asked.iter().chain(faded)) {
            Some(_) => Wanted::Spec,
            None => Wanted::Held,
        };
        let wanted = CLASSES.iter().map(|class| {
            let mut specs = self.specs.iter();
            let spec = specs.find(|spec| spec.class() == *class);
            spec.map_or(Wanted::Nothing, |spec| want(Arc::new(spec.clone())))
        });
        (wanted.collect(), made.notes)
    }

    /// Makes the disk so, unless it was so when it was last looked at.
    pub(super) async fn settle(
        &mut self,
        settings: &Settings,
        wanted: Vec<Wanted>,
        again: bool,
    ) -> Outcome {
        let known = self.last.as_ref().filter(|(last, outcome)| {
            // What failed is tried again with every round that looks.
            !again && *last == wanted && !outcome.late
        });
        if let Some((_, outcome)) = known {
            return outcome.clone();
        }
        let (dir, asked) = (settings.cdi.dir.clone(), wanted.clone());
        let settle = move || sync(&dir, &asked);
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
                last.with_problem(&settings.cdi.dir, disk_problem(settings, &error))
            }
        };
        self.last = Some((wanted, outcome.clone()));
        outcome
    }
}

// === impl Around ===

impl Around {
    fn containers(&self) -> usize {
        let held = self.held.as_ref().ok().and_then(Option::as_ref);
        held.map_or(0, |held| held.containers)
    }
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

    /// One whose kubelet gave these names to a container.
    fn memory(names: &[&str]) -> Memory {
        let held = Held {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            containers: 1,
        };
        let around = Around {
            runtime: Evidence::default(),
            held: Ok(Some(held)),
        };
        Memory {
            around: Some(around),
            ..Memory::default()
        }
    }

    fn wish(memory: &Memory) -> Option<Wish> {
        memory.wish(memory.around.as_ref().unwrap())
    }

    fn handover(list: config::ListStrategy, dev_root: &str) -> Handover {
        Handover {
            lists: vec![list],
            nvidia: NvidiaHandover {
                dev_root: dev_root.into(),
                ..NvidiaHandover::default()
            },
            ..Handover::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_asked_for_counts_until_the_kubelet_wrote_it_down() {
        let (by_name, other) = (handover(CdiCri, "/"), handover(Envvar, "/"));
        let mut memory = memory(&[]);
        memory.ask([&by_name].into_iter(), GRACE);
        tokio::time::advance(GRACE * 2).await;
        memory.ask([&other].into_iter(), GRACE);
        assert!(wish(&memory).is_some());
        tokio::time::advance(GRACE).await;
        memory.ask([&other].into_iter(), GRACE);
        assert_eq!(wish(&memory), None);
    }

    #[test]
    fn every_class_is_kept_for_those_who_hold_names_of_it() {
        let mut memory = memory(&[
            "k8s.device-plugin.nvidia.com/gpu=GPU-a",
            "k8s.device-plugin.nvidia.com/gds=all",
            "k8s.device-plugin.nvidia.com/imex-channel=3",
        ]);
        memory.ask([&handover(CdiCri, "/")].into_iter(), GRACE);
        let wish = wish(&memory).unwrap();
        assert_eq!((wish.gds, wish.gdrcopy, wish.mofed), (true, false, false));
        assert_eq!(wish.imex, [3].into());
    }

    #[tokio::test(start_paused = true)]
    async fn where_nodes_are_is_for_those_to_say_who_ask_now() {
        let mut memory = memory(&["k8s.device-plugin.nvidia.com/gpu=GPU-a"]);
        for (list, root) in [(CdiCri, "/old"), (Envvar, "/new"), (CdiCri, "/newer")] {
            memory.ask([&handover(list, root)].into_iter(), GRACE);
            let wish = wish(&memory).unwrap();
            assert_eq!(wish.dev_root, std::path::Path::new(root));
            assert_eq!(wish.conflicts, [""; 0]);
        }
    }
}
