//! Events that the driver reported: each counts until something ended it.

use model::{CauseKind, RecoveryAction, State};

use super::{
    Entry, Rules, What,
    trouble::{self, Trouble},
};
use crate::script::{Counts, Read, View, XIDS};

/// Effect of an event: none, a warning for five minutes, or out of service until a reset or until
/// an uncordon.
enum Does {
    Nothing,
    Warns,
    Out,
    OutForGood,
}

pub(super) fn found(log: &[Entry], rules: &Rules, run: u64) -> Vec<(Option<State>, CauseKind)> {
    let mut found = Vec::new();
    for number in XIDS {
        let told = |entry: &Entry| matches!(entry.what, What::Xid(xid) if xid == number);
        let Some(last) = log.iter().rposition(told) else {
            continue;
        };
        let later = || (last + 1..log.len()).map(|at| (&log[..at], &log[at]));
        let was_reset = || later().any(|(before, entry)| is_reset(before, last, entry));
        let state = match does(number) {
            Does::Nothing => continue,
            Does::Warns if run - log[last].run >= 300 || was_reset() => continue,
            Does::Warns => None,
            Does::Out if was_reset() => continue,
            Does::OutForGood if later().any(|(_, entry)| matches!(entry.what, What::Uncordon)) => {
                continue;
            }
            Does::Out | Does::OutForGood => Some(State::Unhealthy),
        };
        found.push((state, CauseKind::Event));
    }
    if ecc(log) {
        let state = (!rules.ecc_warns).then_some(State::Unhealthy);
        found.push((state, CauseKind::Ecc));
    }
    found
}

fn does(number: u64) -> Does {
    match number {
        43 => Does::Nothing,
        13 | 94 => Does::Warns,
        54 => Does::OutForGood,
        _ => Does::Out,
    }
}

/// True if a reported memory error still counts.
fn ecc(log: &[Entry]) -> bool {
    let told = |entry: &Entry| matches!(entry.what, What::Ecc);
    let Some(last) = log.iter().rposition(told) else {
        return false;
    };
    (last + 1..log.len()).all(|at| {
        let counts = |end: usize| trouble::stands(Trouble::Ecc, &log[..end]).is_some();
        let good = matches!(log[at].what, What::Read(Read::Ecc(Some(0))));
        let counted_no_more = good && counts(at) && !counts(at + 1);
        !is_reset(&log[..at], last, &log[at]) && !counted_no_more
    })
}

/// True if an entry shows that the device was reset after `told`, or is an uncordon.
fn is_reset(before: &[Entry], told: usize, entry: &Entry) -> bool {
    match &entry.what {
        What::Reload | What::Uncordon => true,
        What::Look(View::Well) => was_away(before),
        What::Read(Read::Recovery(Some(RecoveryAction::None))) => {
            let had = |entry: &Entry| matches!(entry.what, What::Release(_));
            was_asked(before) || before[told..].iter().any(had)
        }
        // Without counters between the two, the reset may be older than the event.
        What::Count(_) => {
            let counted = before[told..].iter().any(|entry| entry.fell.is_some());
            entry.fell == Some(true) && counted
        }
        _ => false,
    }
}

/// True if the most reliable counter since the last known reset fell. `None` if that counter was
/// not read.
pub(super) fn fell(before: &[Entry], now: &Counts) -> Option<bool> {
    let mut told: Vec<Counts> = Vec::new();
    for (at, entry) in before.iter().enumerate().rev() {
        match entry.what {
            What::Reload => break,
            What::Look(View::Well) if was_away(&before[..at]) => break,
            What::Count(counts) => told.push(counts),
            _ => {}
        }
        if entry.fell == Some(true) {
            break;
        }
    }
    let last = |counter: fn(&Counts) -> Option<u64>| told.iter().find_map(counter);
    let (before, now) = match (last(|c| c.energy), last(|c| c.replays), last(|c| c.ecc)) {
        (Some(energy), ..) => (energy, now.energy),
        (None, Some(replays), _) => (replays, now.replays),
        (None, None, Some(ecc)) => (ecc, now.ecc),
        (None, None, None) => {
            let first = now.energy.or(now.replays).or(now.ecc);
            return first.map(|_| false);
        }
    };
    now.map(|now| now < before)
}

/// True if the device was absent when it was last looked at.
fn was_away(before: &[Entry]) -> bool {
    let last = before.iter().rev().find_map(|entry| match entry.what {
        What::Look(View::Lost | View::Fatal | View::Missing) => Some(true),
        What::Read(Read::Fatal) => Some(true),
        What::Look(View::Well) => Some(false),
        _ => None,
    });
    last == Some(true)
}

/// True if the driver asked for an action when that was last read.
fn was_asked(before: &[Entry]) -> bool {
    let last = before.iter().rev().find_map(|entry| match entry.what {
        What::Read(Read::Recovery(Some(action))) => Some(action != RecoveryAction::None),
        What::Reload => Some(false),
        _ => None,
    });
    last == Some(true)
}
