//! State of the releases: their end, and if all driver handles of the cards are closed. Pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use model::CardRef;

use super::{
    orders::{ReleaseEnd, ReleaseScope},
    process::{ProcessNumber, Role},
};
use crate::sighting::{ReleaseStatus, Releases};

/// All releases. A release that has ended stays until a process has read its card again.
#[derive(Debug, Default)]
pub(super) struct ReleaseTable {
    entries: BTreeMap<ReleaseScope, ReleaseEntry>,
}

/// Difference that an order makes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReleaseChange {
    /// Releases that begin with this order.
    pub(super) released: Vec<ReleaseScope>,
    /// Releases that end with this order.
    pub(super) resumed: Vec<ReleaseScope>,
}

#[derive(Debug)]
struct ReleaseEntry {
    until: Timestamp,
    own: bool,
    /// Processes up to this number may have driver handles of the cards.
    before: ProcessNumber,
    /// Set when the release has ended: processes after this number read the cards again.
    resumed: Option<ProcessNumber>,
}

// === impl ReleaseTable ===

impl ReleaseTable {
    /// Applies the ordered releases. `started` is the number of the last process that was started.
    pub(super) fn apply_releases(
        &mut self,
        wanted: &BTreeMap<ReleaseScope, ReleaseEnd>,
        started: ProcessNumber,
    ) -> ReleaseChange {
        let mut change = ReleaseChange::default();
        for (which, until) in wanted {
            match self.entries.get_mut(which) {
                Some(entry) if entry.resumed.is_none() => {
                    (entry.until, entry.own) = (until.time, until.own);
                }
                _ => {
                    let entry = ReleaseEntry {
                        until: until.time,
                        own: until.own,
                        before: started,
                        resumed: None,
                    };
                    self.entries.insert(*which, entry);
                    change.released.push(*which);
                }
            }
        }
        for (which, entry) in &mut self.entries {
            if !wanted.contains_key(which) && entry.resumed.is_none() {
                entry.resumed = Some(started);
                change.resumed.push(*which);
            }
        }
        change
    }

    /// Returns true if every card is released.
    pub(super) fn holds_all(&self) -> bool {
        self.is_in_force(ReleaseScope::All)
    }

    /// Returns true if `card` is released, alone or with all cards.
    pub(super) fn holds_card(&self, card: CardRef) -> bool {
        self.holds_all() || self.is_in_force(ReleaseScope::Card(card))
    }

    /// Lists the cards that are released alone.
    pub(super) fn list_cards_released(&self) -> impl Iterator<Item = CardRef> {
        self.entries.keys().filter_map(|which| match which {
            ReleaseScope::Card(card) if self.is_in_force(*which) => Some(*card),
            _ => None,
        })
    }

    /// Removes the releases that ended before the main process `number` started: its report has
    /// their cards again.
    pub(super) fn reported(&mut self, number: ProcessNumber) {
        self.entries
            .retain(|_, entry| entry.resumed.is_none_or(|last| number <= last));
    }

    /// Removes the releases that have ended, although no process has read their cards again.
    // The main process has failed: from now on its error is the reason why the cards are missing.
    pub(super) fn remove_ended(&mut self) {
        self.entries.retain(|_, entry| entry.resumed.is_none());
    }

    /// Describes the releases for the state of the backend. `live` has the processes that have not
    /// ended, `occupied` the agent's own work on cards. Both keep a release from being closed.
    pub(super) fn describe_releases(
        &self,
        live: &BTreeMap<ProcessNumber, Role>,
        occupied: &BTreeSet<ReleaseScope>,
    ) -> Releases {
        let mut released = Releases::default();
        for (which, entry) in &self.entries {
            let mut older = live.range(..=entry.before);
            let release = ReleaseStatus {
                until: entry.until,
                own: entry.own,
                closed: !older.any(|(_, role)| which.is_touched_by(*role))
                    && !occupied.iter().any(|work| which.meets(*work)),
            };
            match which {
                ReleaseScope::All => released.all = Some(release),
                ReleaseScope::Card(card) => {
                    released.cards.insert(*card, release);
                }
            }
        }
        released
    }

    fn is_in_force(&self, which: ReleaseScope) -> bool {
        let entry = self.entries.get(&which);
        entry.is_some_and(|entry| entry.resumed.is_none())
    }
}

// === impl ReleaseScope ===

impl ReleaseScope {
    /// Returns true if a process with this role may have driver handles of the cards.
    pub(super) fn is_touched_by(self, role: Role) -> bool {
        match (self, role) {
            (Self::All, _) | (Self::Card(_), Role::Main) => true,
            (Self::Card(card), Role::Solo(tried)) => card == tried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::Instant;

    fn card(index: u32) -> CardRef {
        CardRef::Index(index)
    }

    fn wanted(which: &[ReleaseScope]) -> BTreeMap<ReleaseScope, ReleaseEnd> {
        let until = ReleaseEnd {
            time: Timestamp::UNIX_EPOCH,
            deadline: Instant::now() + Duration::from_secs(60),
            own: false,
        };
        which.iter().map(|which| (*which, until)).collect()
    }

    #[test]
    fn a_card_is_closed_when_every_process_that_could_touch_it_has_ended() {
        let mut aside = ReleaseTable::default();
        let change = aside.apply_releases(&wanted(&[ReleaseScope::Card(card(1))]), 3);
        assert_eq!(change.released, [ReleaseScope::Card(card(1))]);
        let closed = |live: &[(ProcessNumber, Role)]| {
            let live = live.iter().copied().collect();
            aside.describe_releases(&live, &BTreeSet::new()).cards[&card(1)].closed
        };
        assert!(!closed(&[(2, Role::Main)]));
        assert!(!closed(&[(3, Role::Solo(card(1)))]));
        assert!(closed(&[(3, Role::Solo(card(2)))]));
        assert!(closed(&[(4, Role::Main)]), "it started without the card");
    }

    #[test]
    fn a_card_is_not_closed_while_the_agent_works_on_it() {
        let mut aside = ReleaseTable::default();
        aside.apply_releases(&wanted(&[ReleaseScope::Card(card(1))]), 0);
        let closed = |work: ReleaseScope| {
            let told = aside.describe_releases(&BTreeMap::new(), &BTreeSet::from([work]));
            told.cards[&card(1)].closed
        };
        assert!(closed(ReleaseScope::Card(card(0))));
        assert!(!closed(ReleaseScope::Card(card(1))) && !closed(ReleaseScope::All));
    }

    #[test]
    fn a_release_ends_with_the_first_report_of_a_process_that_looks_again() {
        let mut aside = ReleaseTable::default();
        aside.apply_releases(&wanted(&[ReleaseScope::All]), 1);
        assert!(aside.holds_all() && aside.holds_card(card(0)));
        let change = aside.apply_releases(&wanted(&[]), 1);
        assert_eq!(change.resumed, [ReleaseScope::All]);
        assert!(!aside.holds_all(), "a process may be started again");
        aside.reported(1);
        let told =
            |aside: &ReleaseTable| aside.describe_releases(&BTreeMap::new(), &BTreeSet::new());
        assert!(told(&aside).all.is_some());
        aside.reported(2);
        assert_eq!(told(&aside), Releases::default());
    }

    #[test]
    fn a_second_order_only_moves_the_end() {
        let mut aside = ReleaseTable::default();
        aside.apply_releases(&wanted(&[ReleaseScope::Card(card(0))]), 1);
        let change = aside.apply_releases(&wanted(&[ReleaseScope::Card(card(0))]), 2);
        assert_eq!(change, ReleaseChange::default());
    }
}
