//! The calls under way that may hang, readable by a thread that makes none: foreign calls, and file
//! reads in which a driver of the kernel's answers.

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
type Clock = std::time::Instant;

/// The table of calls: how many were made, and which have not returned.
///
/// Shared between the threads that call the driver and one that watches them. No lock is held
/// while a call is under way.
#[derive(Debug, Default)]
pub struct Calls {
    made: AtomicU64,
    tickets: AtomicU64,
    running: Mutex<Vec<Running>>,
    /// What each thread works at, where it is not the survey.
    works: Mutex<Vec<(ThreadId, Work)>>,
}

/// A call that takes longer than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The symbol that was called, or what was done with which file.
    pub call: Cow<'static, str>,
    /// The card it was called for.
    pub device: Option<CardRef>,
    /// When it was called.
    pub since: SystemTime,
    /// What the thread that called it works at.
    pub work: Work,
}

/// Strikes a call out when it is dropped.
#[derive(Debug)]
pub struct Ticket<'a> {
    calls: &'a Calls,
    number: u64,
}

/// Ends the newest part of a thread's work when it is dropped.
#[derive(Debug)]
struct Shift<'a> {
    calls: &'a Calls,
    thread: ThreadId,
}

#[derive(Debug)]
struct Running {
    number: u64,
    call: Cow<'static, str>,
    device: Option<CardRef>,
    since: SystemTime,
    work: Work,
    begun: Clock,
    allowed: Duration,
}

// === impl Calls ===

impl Calls {
    /// Time that a call may take before it is overdue, unless it says otherwise.
    pub const ALLOWED: Duration = Duration::from_secs(1);

    /// How many foreign calls have been made, those under way included.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// The calls that take longer than they may: a second, or for a call that waits by design a
    /// second more than it was told to wait.
    pub fn overdue(&self) -> Vec<Overdue> {
        self.running()
            .iter()
            .filter(|call| call.begun.elapsed() > call.allowed)
            .map(|call| Overdue {
                call: call.call.clone(),
                device: call.device,
                since: call.since,
                work: call.work,
            })
            .collect()
    }

    /// Does something that is no foreign call and may hang like one, such as reading a file of the
    /// driver's: `call` says what, for a person. It is not counted.
    pub fn watch<T>(
        &self,
        call: impl Into<Cow<'static, str>>,
        device: Option<CardRef>,
        act: impl FnOnce() -> T,
    ) -> T {
        let _ticket = self.note(call.into(), device, Self::ALLOWED);
        act()
    }

    /// Does a part of the work that is not the survey: the calls that this thread makes meanwhile
    /// belong to it.
    pub fn during<T>(&self, work: Work, act: impl FnOnce() -> T) -> T {
        let shift = Shift {
            calls: self,
            thread: thread::current().id(),
        };
        self.works().push((shift.thread, work));
        act()
    }

    /// Writes a foreign call down that is about to be made; dropping the ticket strikes it out.
    pub fn begin(
        &self,
        call: &'static str,
        device: Option<CardRef>,
        allowed: Duration,
    ) -> Ticket<'_> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.note(Cow::Borrowed(call), device, allowed)
    }

    fn note(
        &self,
        call: Cow<'static, str>,
        device: Option<CardRef>,
        allowed: Duration,
    ) -> Ticket<'_> {
        let number = self.tickets.fetch_add(1, Ordering::Relaxed);
        let work = self.work();
        self.running().push(Running {
            number,
            call,
            device,
            since: SystemTime::now(),
            work,
            begun: Clock::now(),
            allowed,
        });
        Ticket {
            calls: self,
            number,
        }
    }

    /// What this thread works at.
    fn work(&self) -> Work {
        let me = thread::current().id();
        let works = self.works();
        let mine = works.iter().rev().find(|(thread, _)| *thread == me);
        mine.map_or(Work::Survey, |(_, work)| *work)
    }

    fn works(&self) -> MutexGuard<'_, Vec<(ThreadId, Work)>> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner)
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

// === impl Shift ===

impl Drop for Shift<'_> {
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
        let calls = Calls::default();
        let begin = || calls.begin("nvmlCall", None, Duration::ZERO);
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
        let calls = Calls::default();
        let at = Some(CardRef::Index(0));
        let named = calls.watch("read /sys/file".to_owned(), at, || {
            std::thread::sleep(Calls::ALLOWED + Duration::from_millis(100));
            calls.overdue()
        });
        assert_eq!(named[0].call, "read /sys/file");
        assert_eq!(named[0].device, at);
        assert_eq!((calls.overdue(), calls.made()), (Vec::new(), 0));
    }

    #[test]
    fn names_a_call_only_while_it_is_overdue() {
        let calls = Calls::default();
        let slow = calls.begin("nvmlSlow", Some(CardRef::Index(3)), Duration::ZERO);
        let fast = calls.begin("nvmlFast", None, Duration::from_secs(3600));
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
        let calls = Calls::default();
        let first = calls.begin("nvmlSame", None, Duration::ZERO);
        let second = calls.begin("nvmlSame", Some(CardRef::Index(1)), Duration::ZERO);
        drop(first);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(calls.overdue()[0].device, Some(CardRef::Index(1)));
        drop(second);
    }
}
