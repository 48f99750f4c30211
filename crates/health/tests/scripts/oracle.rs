//! The slow, simple model. It keeps everything that ever happened to a device, and derives each
//! answer from that log. It shares no code with the crate under test.

mod events;
mod trouble;

use config::Weight;
use model::{CauseKind, State};

use self::trouble::{Mark, Trouble};
use crate::script::{Counts, Read, View};

/// Rules of the policy; times in whole seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) unanswered: u64,
    pub(crate) drain_after: Option<u64>,
    pub(crate) passes: usize,
    pub(crate) first: u64,
    pub(crate) limit: u64,
    pub(crate) memory: u64,
    pub(crate) performing_out: bool,
    pub(crate) trend_out: bool,
    pub(crate) deep_out: bool,
    pub(crate) ecc_warns: bool,
    /// Weight of the condition `fan`, if the policy has one.
    pub(crate) fan: Option<Weight>,
}

/// An entry of the log, by the wall clock and by the run time of all agents.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) wall: u64,
    pub(crate) run: u64,
    pub(crate) what: What,
    /// For counters: true if they show a reset, false if they show none.
    fell: Option<bool>,
    /// Meaning of the entry for each trouble.
    marks: [Option<Mark>; Trouble::ALL.len()],
    /// Trouble that exists after the entry, with the run time at which it began.
    stands: [Option<u64>; Trouble::ALL.len()],
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Look(View),
    Xid(u64),
    Ecc,
    Read(Read),
    Restart,
    /// The driver was reloaded.
    Reload,
    Cordon,
    Uncordon,
    Release(u64),
    Resume,
    Residue,
    Clean,
    Count(Counts),
}

/// Log of everything that ever happened to a device.
#[derive(Clone, Debug)]
pub(crate) struct Oracle {
    is_card: bool,
    rules: Rules,
    log: Vec<Entry>,
}

/// Expected result: the state, and the kinds of causes and of warnings, sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) state: State,
    pub(crate) causes: Vec<CauseKind>,
    pub(crate) warnings: Vec<CauseKind>,
}

impl Oracle {
    pub(crate) fn new(is_card: bool, rules: Rules) -> Self {
        Self {
            is_card,
            rules,
            log: Vec::new(),
        }
    }

    pub(crate) fn note(&mut self, wall: u64, run: u64, what: What) {
        // A card that is well does not change because it does not report its instances.
        let what = match what {
            What::Look(View::Untold) if self.is_card => What::Look(View::Well),
            other => other,
        };
        let entry = Entry {
            wall,
            run,
            fell: match &what {
                What::Count(counts) => events::fell(&self.log, counts),
                _ => None,
            },
            what,
            marks: Default::default(),
            stands: Default::default(),
        };
        let marks = Trouble::ALL.map(|trouble| trouble::mark(trouble, &self.log, &entry));
        self.log.push(Entry { marks, ..entry });
        let stands = Trouble::ALL.map(|trouble| trouble::judge(trouble, &self.log, &self.rules));
        self.log.last_mut().expect("it was just pushed").stands = stands;
    }

    pub(crate) fn published(&self, run: u64) -> Published {
        let rules = &self.rules;
        let mut found: Vec<(Option<State>, CauseKind)> = Vec::new();
        if self.is_cordoned() {
            found.push((Some(State::Maintenance), CauseKind::Cordoned));
        }
        if self.is_released() {
            found.push((Some(State::Maintenance), CauseKind::Released));
        }
        if self.is_withheld(rules, run) {
            found.push((Some(State::Unhealthy), CauseKind::Residue));
        }
        found.extend(events::found(&self.log, rules, run));
        for trouble in Trouble::ALL {
            if let Some(start) = trouble::stands(trouble, &self.log)
                && let Some(state) = trouble.weigh(run - start, &self.log, rules)
            {
                found.push((state, trouble.kind()));
            }
        }
        found.sort();
        let state = found.iter().filter_map(|(state, _)| *state).max();
        let kinds = |out: bool| {
            let mut kinds: Vec<CauseKind> = found
                .iter()
                .filter(|(state, _)| state.is_some() == out)
                .map(|(_, kind)| *kind)
                .collect();
            kinds.sort();
            kinds
        };
        Published {
            state: state.unwrap_or(State::Healthy),
            causes: kinds(true),
            warnings: kinds(false),
        }
    }

    fn is_cordoned(&self) -> bool {
        let last = |what: fn(&What) -> bool| self.log.iter().rposition(|e| what(&e.what));
        let on = last(|what| matches!(what, What::Cordon));
        let off = last(|what| matches!(what, What::Uncordon));
        on.is_some() && on > off
    }

    /// A release ends with the first look after its time.
    fn is_released(&self) -> bool {
        let mut released = None;
        for entry in &self.log {
            released = match entry.what {
                What::Release(until) => Some(until),
                What::Resume => None,
                What::Look(view) if view.tells() => released.filter(|until| entry.wall < *until),
                _ => released,
            };
        }
        released.is_some()
    }

    fn is_withheld(&self, rules: &Rules, run: u64) -> bool {
        let mut entries = self.log.iter().rev();
        let found = entries.find_map(|entry| match entry.what {
            What::Residue => Some(Some(entry.run)),
            What::Clean => Some(None),
            _ => None,
        });
        let Some(Some(found)) = found else {
            return false;
        };
        let residue = self.log.iter().filter_map(|entry| match entry.what {
            What::Residue => Some(Some(entry.wall)),
            What::Uncordon => Some(None),
            _ => None,
        });
        let times = times(residue, rules);
        run - found < rules.doubled(30, times)
    }
}

impl Rules {
    fn doubled(&self, first: u64, times: u32) -> u64 {
        let mut hold = first;
        for _ in 1..times {
            hold = (hold * 2).min(self.limit.max(first));
        }
        hold
    }
}

/// Returns the number of beginnings, each recent enough after the one before. `None` is an uncordon
/// by an operator, which starts the count again.
fn times(begun: impl Iterator<Item = Option<u64>>, rules: &Rules) -> u32 {
    let (mut times, mut last) = (0, None);
    for wall in begun {
        times = match (wall, last) {
            (None, _) => 0,
            (Some(wall), Some(last)) if wall - last <= rules.memory => times + 1,
            (Some(_), _) => 1,
        };
        last = wall;
    }
    times
}
