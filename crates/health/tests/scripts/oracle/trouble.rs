//! Trouble that checks find: the meaning of each log entry for it, and if it exists.

use config::Weight;
use model::{CauseKind, ConditionState, RecoveryAction, State};

use super::{Entry, Rules, What, times};
use crate::script::{Fabric, Named, Read, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Lost,
    Gone,
    Silent,
    Blind,
    Ecc,
    RepairPending,
    RepairFailed,
    Fabric,
    Joining,
    Recovery,
    Throttled,
    Lanes,
    Generation,
    LinkErrors,
    LinksDown,
    Temperature,
    Corrected,
    Deep,
    Block,
    Cache,
    Fan,
    Slow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Present,
    Working,
    Performing,
    Trend,
    Deep,
}

/// Meaning of an entry for one kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Bad,
    Good,
    /// The check was not made.
    Unread,
    /// The question does not arise any more.
    Over,
    /// Earlier passes do not count any more.
    Restart,
    /// An operator uncordoned the device.
    Word,
}

impl Trouble {
    pub(super) const ALL: [Self; 22] = [
        Self::Lost,
        Self::Gone,
        Self::Silent,
        Self::Blind,
        Self::Ecc,
        Self::RepairPending,
        Self::RepairFailed,
        Self::Fabric,
        Self::Joining,
        Self::Recovery,
        Self::Throttled,
        Self::Lanes,
        Self::Generation,
        Self::LinkErrors,
        Self::LinksDown,
        Self::Temperature,
        Self::Corrected,
        Self::Deep,
        Self::Block,
        Self::Cache,
        Self::Fan,
        Self::Slow,
    ];

    pub(super) fn kind(self) -> CauseKind {
        match self {
            Self::Lost => CauseKind::Lost,
            Self::Gone => CauseKind::Gone,
            Self::Silent => CauseKind::NotAnswering,
            Self::Blind => CauseKind::MonitorDown,
            Self::Ecc => CauseKind::Ecc,
            Self::RepairPending | Self::RepairFailed => CauseKind::MemoryRepair,
            Self::Recovery => CauseKind::RecoveryAction,
            Self::Throttled => CauseKind::Throttled,
            Self::Lanes | Self::Generation => CauseKind::Pcie,
            Self::LinkErrors | Self::LinksDown => CauseKind::Link,
            Self::Temperature => CauseKind::Temperature,
            Self::Corrected => CauseKind::Trend,
            Self::Deep => CauseKind::Deep,
            Self::Fabric | Self::Joining | Self::Block | Self::Cache | Self::Fan | Self::Slow => {
                CauseKind::Condition
            }
        }
    }

    fn tier(self) -> Tier {
        match self {
            Self::Lost | Self::Gone | Self::Silent | Self::Blind => Tier::Present,
            Self::Deep => Tier::Deep,
            Self::Corrected => Tier::Trend,
            Self::Throttled
            | Self::Lanes
            | Self::Generation
            | Self::LinkErrors
            | Self::LinksDown
            | Self::Temperature
            | Self::Fan => Tier::Performing,
            _ => Tier::Working,
        }
    }

    /// Returns the effect after so many seconds: none yet, a warning, or a state.
    pub(super) fn weigh(self, lasted: u64, log: &[Entry], rules: &Rules) -> Option<Option<State>> {
        let out = match (self, self.tier()) {
            (Self::Silent, _) if lasted < rules.unanswered => return Some(Some(State::Unknown)),
            (Self::Blind, _) if rules.drain_after.is_none_or(|after| lasted < after) => {
                return Some(Some(State::Unknown));
            }
            (Self::Ecc, _) => !rules.ecc_warns,
            (Self::Fan, _) if rules.fan == Some(Weight::Off) => return None,
            _ if lasted < self.grace() => return None,
            (Self::Joining, _) => false,
            _ if is_warning(self, log) => false,
            (Self::Fan, _) if rules.fan.is_some() => rules.fan == Some(Weight::Out),
            (_, Tier::Present | Tier::Working) => true,
            (_, Tier::Performing) => rules.performing_out,
            (_, Tier::Trend) => rules.trend_out,
            (_, Tier::Deep) => rules.deep_out,
        };
        Some(out.then_some(State::Unhealthy))
    }

    /// Seconds that the trouble may last before it counts.
    fn grace(self) -> u64 {
        match self {
            Self::Joining => 600,
            Self::Slow => 60,
            _ => 0,
        }
    }
}

/// True if a condition was a warning when it was last read as not ok.
fn is_warning(trouble: Trouble, log: &[Entry]) -> bool {
    let last = log.iter().rev().find_map(|entry| match entry.what {
        What::Read(Read::Condition(named, state)) if of_condition(named) == trouble => Some(state)
            .filter(|state| [ConditionState::Warning, ConditionState::Critical].contains(state)),
        _ => None,
    });
    last == Some(ConditionState::Warning)
}

fn of_condition(named: Named) -> Trouble {
    match named {
        Named::Block => Trouble::Block,
        Named::Cache => Trouble::Cache,
        Named::Fan => Trouble::Fan,
        Named::Slow => Trouble::Slow,
    }
}

/// Returns the run time at which the trouble began that exists at the end of the log.
pub(super) fn stands(trouble: Trouble, log: &[Entry]) -> Option<u64> {
    log.last()?.stands[trouble as usize]
}

/// Returns the beginning of the trouble if it exists after the last entry of the log.
pub(super) fn judge(trouble: Trouble, log: &[Entry], rules: &Rules) -> Option<u64> {
    let (last, before) = log.split_last()?;
    if last.marks[trouble as usize].is_none() {
        return stands(trouble, before);
    }
    let marked = |entry: &Entry| entry.marks[trouble as usize] == Some(Mark::Bad);
    let bad = log.iter().rposition(marked)?;
    let began = stands(trouble, &log[..bad]).unwrap_or(log[bad].run);
    (!ends(trouble, began, log, bad, rules)).then_some(began)
}

/// True if entries after a bad one end the trouble.
fn ends(trouble: Trouble, began: u64, log: &[Entry], bad: usize, rules: &Rules) -> bool {
    let mut goods: Vec<u64> = Vec::new();
    let mut last = Mark::Bad;
    for at in bad..log.len() {
        let Some(mark) = log[at].marks[trouble as usize] else {
            continue;
        };
        match mark {
            Mark::Over => return true,
            Mark::Word if last == Mark::Unread || trouble == Trouble::Generation => return true,
            Mark::Restart => goods.clear(),
            Mark::Good => goods.push(log[at].run),
            _ => {}
        }
        if matches!(mark, Mark::Bad | Mark::Good | Mark::Unread) {
            last = mark;
        }
        let (Some(first), Mark::Good) = (goods.first(), mark) else {
            continue;
        };
        let (passes, hold) = needs(trouble, *first - began, &log[..=at], rules);
        if goods.len() >= passes && log[at].run - first >= hold {
            return true;
        }
    }
    false
}

/// Returns the number of good entries that end the trouble, and the time they have to span.
fn needs(trouble: Trouble, lasted: u64, log: &[Entry], rules: &Rules) -> (usize, u64) {
    let times = begun(trouble, log, rules);
    match (trouble, trouble.tier()) {
        (Trouble::Blind, _) => (1, 0),
        (Trouble::Silent, _) if lasted < rules.unanswered => (1, 0),
        _ if lasted < trouble.grace() => (1, 0),
        (_, Tier::Present) => (rules.passes, rules.doubled(rules.first, times)),
        _ if times <= 1 => (1, 0),
        _ => (1, rules.doubled(rules.first, times - 1)),
    }
}

/// Returns the number of recent beginnings. Trouble with a grace is counted when it ends, if it
/// lasted longer.
fn begun(trouble: Trouble, log: &[Entry], rules: &Rules) -> u32 {
    let mut bad = false;
    let mut begun = Vec::new();
    for (at, entry) in log.iter().enumerate() {
        let mark = match trouble {
            Trouble::Lost | Trouble::Gone => absence(entry),
            _ => entry.marks[trouble as usize],
        };
        match mark {
            Some(Mark::Bad) if trouble.grace() > 0 => bad = true,
            Some(Mark::Bad) if !std::mem::replace(&mut bad, true) => begun.push(Some(entry.wall)),
            Some(Mark::Good) if trouble.grace() > 0 => {
                let start = stands(trouble, &log[..at]).filter(|_| bad);
                let counts = start.is_some_and(|start| entry.run - start >= trouble.grace());
                begun.extend(counts.then_some(Some(entry.wall)));
                bad = false;
            }
            Some(Mark::Good | Mark::Over) => bad = false,
            Some(Mark::Word) => {
                bad &= stands(trouble, &log[..=at]).is_some() || is_absence(trouble);
                begun.push(None);
            }
            _ => {}
        }
    }
    times(begun.into_iter(), rules)
}

fn is_absence(trouble: Trouble) -> bool {
    matches!(trouble, Trouble::Lost | Trouble::Gone)
}

/// Returns the mark for absence: a card that is lost and one that is not listed are both absent.
fn absence(entry: &Entry) -> Option<Mark> {
    match &entry.what {
        What::Look(View::Lost | View::Fatal | View::Missing | View::NoDriver)
        | What::Read(Read::Fatal) => Some(Mark::Bad),
        What::Look(View::Well) => Some(Mark::Good),
        What::Uncordon => Some(Mark::Word),
        _ => None,
    }
}

pub(super) fn mark(trouble: Trouble, before: &[Entry], entry: &Entry) -> Option<Mark> {
    let present = trouble.tier() == Tier::Present;
    match &entry.what {
        What::Restart if trouble == Trouble::Blind => Some(Mark::Over),
        What::Restart => Some(Mark::Restart),
        What::Uncordon => Some(Mark::Word),
        What::Reload if is_ended_by_reset(trouble) => Some(Mark::Over),
        What::Release(_) if present => Some(Mark::Restart),
        What::Look(view) if present => look(trouble, *view),
        What::Read(Read::Fatal) if present => look(trouble, View::Lost),
        What::Read(read) if !present => value(trouble, read, before, entry.run),
        _ => None,
    }
}

fn is_ended_by_reset(trouble: Trouble) -> bool {
    let stays = [Trouble::RepairFailed, Trouble::Block, Trouble::Slow];
    trouble.tier() == Tier::Working && !stays.contains(&trouble)
}

fn look(trouble: Trouble, view: View) -> Option<Mark> {
    use Trouble::{Blind, Gone, Lost, Silent};
    let (bad, over): (Trouble, &[Trouble]) = match view {
        View::Well => return Some(Mark::Good),
        View::Lost | View::Fatal => (Lost, &[Gone, Silent, Blind]),
        View::Missing => (Gone, &[Lost, Silent, Blind]),
        View::NoDriver => (Gone, &[Silent, Blind]),
        View::Stuck | View::Failed | View::Untold => (Silent, &[Blind]),
        View::Unwatched => (Blind, &[]),
    };
    if trouble == bad {
        return Some(Mark::Bad);
    }
    let otherwise = (!view.tells()).then_some(Mark::Restart);
    over.contains(&trouble).then_some(Mark::Over).or(otherwise)
}

/// Returns the mark of a reading for trouble of its tier; a value that it does not have is unread.
fn value(trouble: Trouble, read: &Read, before: &[Entry], run: u64) -> Option<Mark> {
    let bad = |bad: bool| if bad { Mark::Bad } else { Mark::Good };
    let known = |value: Option<bool>| Some(value.map_or(Mark::Unread, bad));
    match (trouble, read) {
        (Trouble::Ecc, Read::Ecc(errors)) => known(errors.map(|errors| errors > 0)),
        (Trouble::RepairPending, Read::RepairPending(flag))
        | (Trouble::RepairFailed, Read::RepairFailed(flag))
        | (Trouble::Throttled, Read::Throttled(flag)) => known(*flag),
        (Trouble::Deep, Read::Deep(passed)) => known(passed.map(|passed| !passed)),
        (Trouble::Recovery, Read::Recovery(action)) => {
            known(action.map(|action| action != RecoveryAction::None))
        }
        (Trouble::Lanes, Read::Lanes(lanes)) => known(lanes.map(|lanes| lanes < 16)),
        (Trouble::LinksDown, Read::LinksDown(down)) => known(down.map(|down| down > 0)),
        (Trouble::Temperature, Read::Temperature(celsius)) => known(celsius.map(|c| c >= 85)),
        (Trouble::Joining, Read::Fabric(Some(state))) => Some(bad(*state == Fabric::Joining)),
        (Trouble::Fabric, Read::Fabric(Some(state))) => {
            let told = *state != Fabric::Joining;
            known(told.then_some(*state == Fabric::Refused))
        }
        (Trouble::Generation, Read::Generation(Some(generation), busy)) => {
            let decided = *generation == 4 || *busy >= 50;
            decided.then(|| bad(*generation < 4))
        }
        (Trouble::LinkErrors, Read::LinkErrors(Some(errors))) => {
            last_errors(before).map(|last| bad(*errors > last))
        }
        (Trouble::Corrected, Read::Corrected(Some(errors))) => {
            growth(*errors, before, run).map(|growth| bad(growth > 100))
        }
        (_, Read::Condition(named, state)) if of_condition(*named) == trouble => {
            let told = *state != ConditionState::Unknown;
            known(told.then_some(*state != ConditionState::Ok))
        }
        _ => (tier(read) == trouble.tier()).then_some(Mark::Unread),
    }
}

fn tier(read: &Read) -> Tier {
    match read {
        Read::Ecc(_)
        | Read::RepairPending(_)
        | Read::RepairFailed(_)
        | Read::Fabric(_)
        | Read::Recovery(_)
        | Read::Condition(Named::Block | Named::Cache | Named::Slow, _) => Tier::Working,
        Read::Corrected(_) => Tier::Trend,
        Read::Deep(_) => Tier::Deep,
        _ => Tier::Performing,
    }
}

/// Returns the link errors that were read last since the driver was loaded.
fn last_errors(before: &[Entry]) -> Option<u64> {
    let last = before.iter().rev().find_map(|entry| match entry.what {
        What::Read(Read::LinkErrors(Some(errors))) => Some(Some(errors)),
        What::Reload => Some(None),
        _ => None,
    });
    last.flatten()
}

/// Returns the growth of corrected errors within the last hour, as far as this agent read them.
fn growth(errors: u64, before: &[Entry], run: u64) -> Option<u64> {
    let (mut later, mut oldest) = (errors, None);
    for entry in before.iter().rev() {
        match entry.what {
            What::Reload | What::Restart => break,
            // The counter was reset in between.
            What::Read(Read::Corrected(Some(value))) if value > later => break,
            What::Read(Read::Corrected(Some(value))) => {
                later = value;
                if run - entry.run <= 3600 {
                    oldest = Some(value);
                }
            }
            _ => {}
        }
    }
    oldest.map(|oldest| errors - oldest)
}
