//! What the agent may tell a supervisor: to look again now, and to keep its hands off a card for a
//! while. Work of the agent on a card is written down here too: it goes when the card does.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use jiff::Timestamp;
use model::CardRef;
use tokio::{sync::watch, time::Instant};

/// Tells a supervisor what to do. Cheap to clone, never blocks; what was ordered before the
/// supervisor runs is obeyed before its first process starts.
#[derive(Clone, Debug)]
pub struct Orders(watch::Sender<Wanted>);

/// What is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Which {
    /// Every card: no process is left.
    All,
    /// One card: the others are looked at by a process that does not touch this one.
    Card(CardRef),
}

/// What was ordered, all of it: a supervisor that was busy misses nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// How often a new look was ordered.
    pub(super) refreshes: u64,
    /// What is released.
    pub(super) released: BTreeMap<Which, Until>,
    /// Work of the agent on cards.
    pub(super) occupied: BTreeSet<Which>,
}

/// Work of the agent on a card: a command that may have the card open. No release of the card is closed
/// before this is dropped.
#[derive(Debug)]
pub struct Occupied {
    orders: Orders,
    which: Which,
    wanted: watch::Receiver<Wanted>,
}

/// When a release ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Until {
    /// For people.
    pub(super) time: Timestamp,
    /// For us: clocks jump.
    pub(super) deadline: Instant,
    /// Whether the agent itself has it.
    pub(super) own: bool,
}

// === impl Which ===

impl Which {
    /// Whether `one` is meant by it.
    fn has(self, one: Self) -> bool {
        self == Self::All || self == one
    }

    /// Returns true if a card can be meant by both.
    pub(super) fn meets(self, other: Self) -> bool {
        self.has(other) || other == Self::All
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("every card"),
            Self::Card(card) => card.fmt(f),
        }
    }
}

// === impl Orders ===

impl Orders {
    /// Asks for a new look now. The sighting that it makes is passed on even if nothing changed,
    /// and the samples of the look follow it.
    pub fn refresh(&self) {
        self.0.send_modify(|wanted| wanted.refreshes += 1);
    }

    /// Gives `which` up for `time`: no probe looks at it, and every driver handle to it is closed
    /// within two seconds, as the sighting then says. It is taken back by itself; a second order
    /// for the same card replaces the first. Returns when it will be taken back.
    pub fn release(&self, which: Which, time: Duration) -> Timestamp {
        self.give_up(which, time, false)
    }

    /// Does the same for the agent itself, which has `which` reset; the sighting tells them apart.
    /// `None` where it is released already.
    pub fn lend(&self, which: Which, time: Duration) -> Option<Timestamp> {
        (!self.holds(which)).then(|| self.give_up(which, time, true))
    }

    /// Whether `which` is released, alone or with all others.
    pub fn holds(&self, which: Which) -> bool {
        let wanted = self.0.borrow();
        [Which::All, which]
            .iter()
            .any(|which| wanted.released.contains_key(which))
    }

    /// Begins work on `which`. `None` where it is released, or where other work goes on.
    pub fn occupy(&self, which: Which) -> Option<Occupied> {
        let has_begun = self.0.send_if_modified(|wanted| {
            let is_free = |other: &Which| !which.meets(*other);
            let mut taken = wanted.released.keys().chain(&wanted.occupied);
            taken.all(is_free) && wanted.occupied.insert(which)
        });
        has_begun.then(|| Occupied {
            orders: self.clone(),
            which,
            wanted: self.subscribe(),
        })
    }

    fn give_up(&self, which: Which, time: Duration, own: bool) -> Timestamp {
        // A length that no calendar holds is for ever, as far as a process lives.
        let time = time.min(Duration::from_hours(24 * 365));
        let until = Until {
            time: Timestamp::now() + time,
            deadline: Instant::now() + time,
            own,
        };
        self.0.send_modify(|wanted| {
            wanted.released.insert(which, until);
        });
        until.time
    }

    /// Takes `which` back now; `Which::All` takes back everything, but for what the agent itself
    /// has. `false` where nothing of it was released.
    pub fn resume(&self, which: Which) -> bool {
        self.withdraw(|one, until| which.has(one) && !until.own)
    }

    /// Whether the agent itself has something of `which`.
    pub fn lends(&self, which: Which) -> bool {
        let released = &self.0.borrow().released;
        released
            .iter()
            .any(|(one, until)| until.own && which.has(*one))
    }

    /// Takes back what was given up until `until` and has not been given to somebody else since.
    pub fn take_back(&self, which: Which, until: Timestamp) {
        self.withdraw(|one, given| one == which && given.time == until);
    }

    /// Takes back what was released until now.
    pub(super) fn expire(&self, now: Instant) {
        self.withdraw(|_, until| until.deadline <= now);
    }

    /// Takes back what is `over`; whether there was any.
    fn withdraw(&self, over: impl Fn(Which, &Until) -> bool) -> bool {
        self.0.send_if_modified(|wanted| {
            let before = wanted.released.len();
            wanted.released.retain(|which, until| !over(*which, until));
            wanted.released.len() < before
        })
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Wanted> {
        self.0.subscribe()
    }
}

// === impl Occupied ===

impl Occupied {
    /// Waits until the card is released: the work has to end.
    pub async fn recalled(&mut self) {
        let which = self.which;
        let is_released = |wanted: &Wanted| wanted.released.keys().any(|one| which.meets(*one));
        // Its own sender keeps it open.
        let _ = self.wanted.wait_for(is_released).await;
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.orders.0.send_modify(|wanted| {
            wanted.occupied.remove(&self.which);
        });
    }
}

impl Default for Orders {
    fn default() -> Self {
        Self(watch::Sender::new(Wanted::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_has_got_meanwhile_is_not_taken_back() {
        let orders = Orders::default();
        let wanted = orders.subscribe();
        let [lent, other] = [0, 1].map(|index| Which::Card(CardRef::Index(index)));
        let [until, until_other] =
            [lent, other].map(|which| orders.lend(which, Duration::from_secs(25)).unwrap());
        orders.release(lent, Duration::from_secs(600));
        orders.take_back(lent, until);
        orders.take_back(other, until_other);
        let left: Vec<Which> = wanted.borrow().released.keys().copied().collect();
        assert_eq!(left, [lent]);
        assert!(!wanted.borrow().released[&lent].own);
        assert_eq!(orders.lend(lent, Duration::from_secs(25)), None);
        orders.release(Which::All, Duration::from_secs(600));
        assert_eq!(orders.lend(other, Duration::from_secs(25)), None);
    }

    #[tokio::test]
    async fn work_on_a_card_is_recalled_by_its_release_and_none_begins_meanwhile() {
        let orders = Orders::default();
        let [card, other] = [0, 1].map(|index| Which::Card(CardRef::Index(index)));
        let mut work = orders.occupy(card).unwrap();
        assert!(orders.occupy(card).is_none() && orders.occupy(Which::All).is_none());
        let mut more = orders.occupy(other).unwrap();
        orders.release(card, Duration::from_secs(600));
        work.recalled().await;
        drop(work);
        assert!(orders.occupy(card).is_none(), "it is released");
        assert!(futures_util::FutureExt::now_or_never(more.recalled()).is_none());
        orders.release(Which::All, Duration::from_secs(600));
        more.recalled().await;
        drop(more);
        orders.resume(Which::All);
        assert!(orders.occupy(Which::All).is_some());
    }

    #[test]
    fn what_the_agent_itself_has_no_operator_takes_back() {
        let orders = Orders::default();
        let [lent, other] = [0, 1].map(|index| Which::Card(CardRef::Index(index)));
        let until = orders.lend(lent, Duration::from_secs(25)).unwrap();
        assert!(orders.lends(lent) && orders.lends(Which::All) && !orders.lends(other));
        orders.release(other, Duration::from_secs(600));
        assert!(!orders.resume(lent));
        assert!(orders.resume(Which::All), "the other one");
        assert!(orders.holds(lent) && !orders.holds(other));
        orders.take_back(lent, until);
        assert!(!orders.holds(lent) && !orders.lends(Which::All));
    }
}
