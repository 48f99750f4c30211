//! The foreign calls under way, readable by a thread that makes none.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use crate::Locator;

#[expect(
    clippy::disallowed_types,
    reason = "driver threads run without a tokio runtime, and a foreign call takes real time"
)]
type Clock = std::time::Instant;

/// How long a call may take before it is overdue, unless it says otherwise.
pub(crate) const ALLOWED: Duration = Duration::from_secs(1);

/// The table of calls: how many were made, and which have not returned.
///
/// Shared between the threads that call the driver and one that watches them. No lock is held
/// while a call is under way.
#[derive(Debug, Default)]
pub struct Calls {
    made: AtomicU64,
    running: Mutex<Vec<Running>>,
}

/// A call that takes longer than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The symbol that was called.
    pub call: &'static str,
    /// The card it was called for.
    pub device: Option<Locator>,
    /// When it was called.
    pub since: SystemTime,
}

/// Strikes a call out when it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket<'a> {
    calls: &'a Calls,
    number: u64,
}

#[derive(Debug)]
struct Running {
    number: u64,
    call: &'static str,
    device: Option<Locator>,
    since: SystemTime,
    begun: Clock,
    allowed: Duration,
}

// === impl Calls ===

impl Calls {
    /// How many calls have been made, those under way included.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The calls that take longer than they may: a second, or for a call that waits by design two
    /// seconds more than it was told to wait.
    pub fn overdue(&self) -> Vec<Overdue> {
        self.running()
            .iter()
            .filter(|call| call.begun.elapsed() > call.allowed)
            .map(|call| Overdue {
                call: call.call,
                device: call.device,
                since: call.since,
            })
            .collect()
    }

    /// Writes a call down that is about to be made.
    pub(crate) fn begin(
        &self,
        call: &'static str,
        device: Option<Locator>,
        allowed: Duration,
    ) -> Ticket<'_> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        self.running().push(Running {
            number,
            call,
            device,
            since: SystemTime::now(),
            begun: Clock::now(),
            allowed,
        });
        Ticket {
            calls: self,
            number,
        }
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Ticket ===

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.calls
            .running()
            .retain(|call| call.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_a_call_only_while_it_is_overdue() {
        let calls = Calls::default();
        let slow = calls.begin("nvmlSlow", Some(Locator::Index(3)), Duration::ZERO);
        let fast = calls.begin("nvmlFast", None, Duration::from_secs(3600));
        std::thread::sleep(Duration::from_millis(2));

        let overdue = calls.overdue();
        assert_eq!(overdue.len(), 1);
        assert_eq!(overdue[0].call, "nvmlSlow");
        assert_eq!(overdue[0].device, Some(Locator::Index(3)));
        drop(slow);
        assert_eq!(calls.overdue(), []);
        drop(fast);
        assert_eq!(calls.made(), 2);
    }

    #[test]
    fn strikes_out_the_call_that_ended_and_no_other() {
        let calls = Calls::default();
        let first = calls.begin("nvmlSame", None, Duration::ZERO);
        let second = calls.begin("nvmlSame", Some(Locator::Index(1)), Duration::ZERO);
        drop(first);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(calls.overdue()[0].device, Some(Locator::Index(1)));
        drop(second);
    }
}
