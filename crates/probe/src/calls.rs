//! Table of the calls under way that may hang: foreign calls, and file reads that a kernel driver
//! answers. A thread that makes no such call reads the table and reports the overdue ones.

use std::{
    borrow::Cow,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, ThreadId},
    time::{Duration, SystemTime},
};

use model::{CardRef, Work};

#[expect(
    clippy::disallowed_types,
    reason = "driver threads run without a tokio runtime, and a foreign call takes real time"
)]
type MonotonicInstant = std::time::Instant;

/// Table of calls: the number of calls made, and those that have not returned.
///
/// Shared between the threads that call the driver and the thread that watches them. No lock is
/// held while a call is under way.
#[derive(Debug, Default)]
pub struct CallTable {
    made: AtomicU64,
    tickets: AtomicU64,
    running: Mutex<Vec<RunningCall>>,
    /// Kind of work of each thread, unless it is the survey. The newest entry of a thread counts.
    works: Mutex<Vec<(ThreadId, Work)>>,
}

/// Call that takes longer than its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdueCall {
    /// Symbol that was called, or the file operation: `read /sys/…`.
    pub call: Cow<'static, str>,
    /// Card of the call; `None` for calls that concern the whole driver.
    pub device: Option<CardRef>,
    /// Start of the call by the wall clock.
    pub since: SystemTime,
    /// Kind of work that the call belongs to.
    pub work: Work,
}

/// Guard of a recorded call: dropping it removes the call from the table.
#[derive(Debug)]
pub struct CallGuard<'a> {
    calls: &'a CallTable,
    number: u64,
}

/// Guard of a thread's kind of work: dropping it restores the kind before.
#[derive(Debug)]
struct WorkGuard<'a> {
    calls: &'a CallTable,
    thread: ThreadId,
}

#[derive(Debug)]
struct RunningCall {
    number: u64,
    call: Cow<'static, str>,
    device: Option<CardRef>,
    since: SystemTime,
    work: Work,
    begun: MonotonicInstant,
    allowed: Duration,
}

// === impl CallTable ===

impl CallTable {
    /// Time after which a call is overdue, unless the call has its own limit.
    pub const ALLOWED: Duration = Duration::from_secs(1);

    /// Returns the number of foreign calls so far, including those under way.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Lists the overdue calls. The limit is one second; a call that waits by design has its
    /// timeout and one second more.
    pub fn overdue(&self) -> Vec<OverdueCall> {
        self.running()
            .iter()
            .filter(|call| call.begun.elapsed() > call.allowed)
            .map(|call| OverdueCall {
                call: call.call.clone(),
                device: call.device,
                since: call.since,
                work: call.work,
            })
            .collect()
    }

    /// Runs an operation that may hang like a foreign call, such as a read of a driver's file, and
    /// records it under the name `call`. The operation is not counted as a foreign call.
    pub fn watch_operation<T>(
        &self,
        call: impl Into<Cow<'static, str>>,
        device: Option<CardRef>,
        act: impl FnOnce() -> T,
    ) -> T {
        let _ticket = self.record_call(call.into(), device, Self::ALLOWED);
        act()
    }

    /// Runs `act` as another kind of work than the survey: all calls that this thread makes in
    /// `act` belong to `work`.
    pub fn during<T>(&self, work: Work, act: impl FnOnce() -> T) -> T {
        let shift = WorkGuard {
            calls: self,
            thread: thread::current().id(),
        };
        self.works().push((shift.thread, work));
        act()
    }

    /// Records a foreign call before it is made. Dropping the guard removes the record.
    pub fn begin_call(
        &self,
        call: &'static str,
        device: Option<CardRef>,
        allowed: Duration,
    ) -> CallGuard<'_> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.record_call(Cow::Borrowed(call), device, allowed)
    }

    fn record_call(
        &self,
        call: Cow<'static, str>,
        device: Option<CardRef>,
        allowed: Duration,
    ) -> CallGuard<'_> {
        let number = self.tickets.fetch_add(1, Ordering::Relaxed);
        let work = self.current_work();
        self.running().push(RunningCall {
            number,
            call,
            device,
            since: SystemTime::now(),
            work,
            begun: MonotonicInstant::now(),
            allowed,
        });
        CallGuard {
            calls: self,
            number,
        }
    }

    /// Returns the kind of work of this thread.
    fn current_work(&self) -> Work {
        let me = thread::current().id();
        let works = self.works();
        let mine = works.iter().rev().find(|(thread, _)| *thread == me);
        mine.map_or(Work::Survey, |(_, work)| *work)
    }

    fn works(&self) -> MutexGuard<'_, Vec<(ThreadId, Work)>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, Vec<RunningCall>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CallGuard ===

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.calls
            .running()
            .retain(|call| call.number != self.number);
    }
}

// === impl WorkGuard ===

impl Drop for WorkGuard<'_> {
    fn drop(&mut self) {
        let mut works = self.calls.works();
        if let Some(at) = works.iter().rposition(|(thread, _)| *thread == self.thread) {
            works.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_belongs_to_the_work_of_its_own_thread() {
        let calls = CallTable::default();
        let begin = || calls.begin_call("nvmlCall", None, Duration::ZERO);
        let works = || {
            std::thread::sleep(Duration::from_millis(2));
            let overdue = calls.overdue().into_iter();
            overdue.map(|call| call.work).collect::<Vec<_>>()
        };
        calls.during(Work::Links, || {
            let _mine = begin();
            std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    let _survey = begin();
                    calls.during(Work::Events, || {
                        let _events = begin();
                        works()
                    })
                });
                assert_eq!(
                    other.join().unwrap(),
                    [Work::Links, Work::Survey, Work::Events]
                );
            });
        });
        let _after = begin();
        assert_eq!(works(), [Work::Survey]);
    }

    #[test]
    fn names_what_is_no_foreign_call_and_does_not_count_it() {
        let calls = CallTable::default();
        let at = Some(CardRef::Index(0));
        let named = calls.watch_operation("read /sys/file".to_owned(), at, || {
            std::thread::sleep(CallTable::ALLOWED + Duration::from_millis(100));
            calls.overdue()
        });
        assert_eq!(named[0].call, "read /sys/file");
        assert_eq!(named[0].device, at);
        assert_eq!((calls.overdue(), calls.made()), (Vec::new(), 0));
    }

    #[test]
    fn names_a_call_only_while_it_is_overdue() {
        let calls = CallTable::default();
        let slow = calls.begin_call("nvmlSlow", Some(CardRef::Index(3)), Duration::ZERO);
        let fast = calls.begin_call("nvmlFast", None, Duration::from_secs(3600));
        std::thread::sleep(Duration::from_millis(2));

        let overdue = calls.overdue();
        assert_eq!(overdue.len(), 1);
        assert_eq!(overdue[0].call, "nvmlSlow");
        assert_eq!(overdue[0].device, Some(CardRef::Index(3)));
        drop(slow);
        assert_eq!(calls.overdue(), []);
        drop(fast);
        assert_eq!(calls.made(), 2);
    }

    #[test]
    fn strikes_out_the_call_that_ended_and_no_other() {
        let calls = CallTable::default();
        let first = calls.begin_call("nvmlSame", None, Duration::ZERO);
        let second = calls.begin_call("nvmlSame", Some(CardRef::Index(1)), Duration::ZERO);
        drop(first);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(calls.overdue()[0].device, Some(CardRef::Index(1)));
        drop(second);
    }
}
