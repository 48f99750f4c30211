//! Orders of the agent to a supervisor: read the cards again now, and release cards for a while.
//! The agent's own work on a card is recorded here too: it must end when the card is released.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use jiff::Timestamp;
use model::CardRef;
use tokio::{sync::watch, time::Instant};

/// Orders to one supervisor. Cheap to clone, never blocks. Orders that are given before the
/// supervisor runs are carried out before its first process starts.
#[derive(Clone, Debug)]
pub struct Orders(watch::Sender<DesiredState>);

/// Cards that a release covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReleaseScope {
    /// Every card: all probe processes end.
    All,
    /// One card: a process that does not open this card reads the others.
    Card(CardRef),
}

/// All orders in force.
// The whole state and not single orders: a watch channel keeps only the newest value, so a
// supervisor that was busy misses nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct DesiredState {
    /// Number of refresh orders so far.
    pub(super) refreshes: u64,
    /// Releases, each with its end.
    pub(super) released: BTreeMap<ReleaseScope, ReleaseEnd>,
    /// The agent's own work on cards.
    pub(super) occupied: BTreeSet<ReleaseScope>,
}

/// Guard of the agent's own work on cards: a command that may have a card open. A release of the
/// card does not count as closed before the guard is dropped.
#[derive(Debug)]
pub struct CardWork {
    orders: Orders,
    which: ReleaseScope,
    wanted: watch::Receiver<DesiredState>,
}

/// End and owner of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReleaseEnd {
    /// End by the wall clock, to show. Also identifies the release.
    pub(super) time: Timestamp,
    /// End by the monotonic clock, which decides: the wall clock may be set.
    pub(super) deadline: Instant,
    /// True if the agent itself ordered the release.
    pub(super) own: bool,
}

// === impl ReleaseScope ===

impl ReleaseScope {
    /// Returns true if this covers all of `one`.
    fn includes_scope(self, one: Self) -> bool {
        self == Self::All || self == one
    }

    /// Returns true if both cover a common card.
    pub(super) fn meets(self, other: Self) -> bool {
        self.includes_scope(other) || other == Self::All
    }
}

impl fmt::Display for ReleaseScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every card"),
            Self::Card(card) => card.fmt(f),
        }
    }
}

// === impl Orders ===

impl Orders {
    /// Orders a new survey of all cards now. The resulting state is published even if nothing
    /// changed, and the samples of the survey follow it.
    pub fn request_refresh(&self) {
        self.0.send_modify(|wanted| wanted.refreshes += 1);
    }

    /// Releases `which` for `time`, for an operator. No probe opens these cards. All driver handles
    /// are closed within two seconds, unless a process hangs; the published state says so. The
    /// release ends by itself. A second release of the same cards replaces the first. Returns the
    /// end of the release.
    pub fn release_cards(&self, which: ReleaseScope, time: Duration) -> Timestamp {
        self.give_up(which, time, false)
    }

    /// Releases `which` for the agent itself, to reset the cards. The published state distinguishes
    /// the two owners. `None` if the cards are released already.
    pub fn release_to_agent(&self, which: ReleaseScope, time: Duration) -> Option<Timestamp> {
        (!self.is_release_ordered(which)).then(|| self.give_up(which, time, true))
    }

    /// Returns true if `which` is released, alone or with every card.
    pub fn is_release_ordered(&self, which: ReleaseScope) -> bool {
        let wanted = self.0.borrow();
        [ReleaseScope::All, which]
            .iter()
            .any(|which| wanted.released.contains_key(which))
    }

    /// Begins the agent's own work on `which`. `None` if a card of it is released, or has other
    /// work.
    pub fn occupy(&self, which: ReleaseScope) -> Option<CardWork> {
        let has_begun = self.0.send_if_modified(|wanted| {
            let is_free = |other: &ReleaseScope| !which.meets(*other);
            let mut taken = wanted.released.keys().chain(&wanted.occupied);
            taken.all(is_free) && wanted.occupied.insert(which)
        });
        has_begun.then(|| CardWork {
            orders: self.clone(),
            which,
            wanted: self.subscribe(),
        })
    }

    fn give_up(&self, which: ReleaseScope, time: Duration, own: bool) -> Timestamp {
        // `Timestamp` and `Instant` panic on overflow. A year is longer than any agent runs.
        let time = time.min(Duration::from_hours(24 * 365));
        let until = ReleaseEnd {
            time: Timestamp::now() + time,
            deadline: Instant::now() + time,
            own,
        };
        self.0.send_modify(|wanted| {
            wanted.released.insert(which, until);
        });
        until.time
    }

    /// Ends the operator's releases of `which` now; with `All` every release of an operator.
    /// Releases for the agent itself stay. Returns false if there was nothing to end.
    pub fn end_operator_releases(&self, which: ReleaseScope) -> bool {
        self.withdraw(|one, until| which.includes_scope(one) && !until.own)
    }

    /// Returns true if a card of `which` is released for the agent itself.
    pub fn lends(&self, which: ReleaseScope) -> bool {
        let released = &self.0.borrow().released;
        released
            .iter()
            .any(|(one, until)| until.own && which.includes_scope(*one))
    }

    /// Ends the release of `which` that ends at `until`, unless another one has replaced it since.
    pub fn take_back(&self, which: ReleaseScope, until: Timestamp) {
        self.withdraw(|one, given| one == which && given.time == until);
    }

    /// Ends the releases whose time is over.
    pub(super) fn end_expired(&self, now: Instant) {
        self.withdraw(|_, until| until.deadline <= now);
    }

    /// Removes the releases for which `over` is true. Returns true if there was one.
    fn withdraw(&self, over: impl Fn(ReleaseScope, &ReleaseEnd) -> bool) -> bool {
        self.0.send_if_modified(|wanted| {
            let before = wanted.released.len();
            wanted.released.retain(|which, until| !over(*which, until));
            wanted.released.len() < before
        })
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<DesiredState> {
        self.0.subscribe()
    }
}

// === impl CardWork ===

impl CardWork {
    /// Waits until a card of this work is released. The caller must then end the work and drop the
    /// guard.
    pub async fn recalled(&mut self) {
        let which = self.which;
        let is_released =
            |wanted: &DesiredState| wanted.released.keys().any(|one| which.meets(*one));
        // Cannot fail: the sender in `orders` keeps the channel open.
        let _ = self.wanted.wait_for(is_released).await;
    }
}

impl Drop for CardWork {
    fn drop(&mut self) {
        self.orders.0.send_modify(|wanted| {
            wanted.occupied.remove(&self.which);
        });
    }
}

impl Default for Orders {
    fn default() -> Self {
        Self(watch::Sender::new(DesiredState::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_has_got_meanwhile_is_not_taken_back() {
        let orders = Orders::default();
        let wanted = orders.subscribe();
        let [lent, other] = [0, 1].map(|index| ReleaseScope::Card(CardRef::Index(index)));
        let [until, until_other] = [lent, other].map(|which| {
            orders
                .release_to_agent(which, Duration::from_secs(25))
                .unwrap()
        });
        orders.release_cards(lent, Duration::from_secs(600));
        orders.take_back(lent, until);
        orders.take_back(other, until_other);
        let left: Vec<ReleaseScope> = wanted.borrow().released.keys().copied().collect();
        assert_eq!(left, [lent]);
        assert!(!wanted.borrow().released[&lent].own);
        assert_eq!(orders.release_to_agent(lent, Duration::from_secs(25)), None);
        orders.release_cards(ReleaseScope::All, Duration::from_secs(600));
        assert_eq!(
            orders.release_to_agent(other, Duration::from_secs(25)),
            None
        );
    }

    #[tokio::test]
    async fn work_on_a_card_is_recalled_by_its_release_and_none_begins_meanwhile() {
        let orders = Orders::default();
        let [card, other] = [0, 1].map(|index| ReleaseScope::Card(CardRef::Index(index)));
        let mut work = orders.occupy(card).unwrap();
        assert!(orders.occupy(card).is_none() && orders.occupy(ReleaseScope::All).is_none());
        let mut more = orders.occupy(other).unwrap();
        orders.release_cards(card, Duration::from_secs(600));
        work.recalled().await;
        drop(work);
        assert!(orders.occupy(card).is_none(), "it is released");
        assert!(futures_util::FutureExt::now_or_never(more.recalled()).is_none());
        orders.release_cards(ReleaseScope::All, Duration::from_secs(600));
        more.recalled().await;
        drop(more);
        orders.end_operator_releases(ReleaseScope::All);
        assert!(orders.occupy(ReleaseScope::All).is_some());
    }

    #[test]
    fn what_the_agent_itself_has_no_operator_takes_back() {
        let orders = Orders::default();
        let [lent, other] = [0, 1].map(|index| ReleaseScope::Card(CardRef::Index(index)));
        let until = orders
            .release_to_agent(lent, Duration::from_secs(25))
            .unwrap();
        assert!(orders.lends(lent) && orders.lends(ReleaseScope::All) && !orders.lends(other));
        orders.release_cards(other, Duration::from_secs(600));
        assert!(!orders.end_operator_releases(lent));
        assert!(
            orders.end_operator_releases(ReleaseScope::All),
            "the other one"
        );
        assert!(orders.is_release_ordered(lent) && !orders.is_release_ordered(other));
        orders.take_back(lent, until);
        assert!(!orders.is_release_ordered(lent) && !orders.lends(ReleaseScope::All));
    }
}
