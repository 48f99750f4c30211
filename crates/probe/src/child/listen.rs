//! The thread that waits for events and passes them on, and what it cannot hear.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc as orders,
    },
    thread,
    time::Duration,
};

use model::Event;
use tokio::sync::mpsc;

use super::{
    Events, chain,
    work::{Gone, Order},
};
use crate::{Calls, protocol::Message};

/// How long one wait for events takes; also how long a change of the cards goes unnoticed.
const WAIT: Duration = Duration::from_secs(1);

/// The rests after a wait that failed.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The event thread's state.
pub(super) struct Listener {
    pub(super) events: Box<dyn Events>,
    pub(super) lines: mpsc::Sender<Message>,
    pub(super) orders: orders::Sender<Order>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) calls: Arc<Calls>,
    pub(super) warnings: Warnings,
}

/// What the event thread cannot hear now, for the reports of the survey.
#[derive(Clone, Debug, Default)]
pub(super) struct Warnings(Arc<Mutex<Vec<String>>>);

// === impl Listener ===

impl Listener {
    pub(super) fn run(mut self) {
        let mut rest = FIRST_REST;
        while !self.stop.load(Ordering::Relaxed) {
            let Self { calls, events, .. } = &mut self;
            let heard = calls.during(model::Work::Events, || events.wait(WAIT));
            let passed = match heard {
                Ok(events) => {
                    rest = FIRST_REST;
                    self.pass(&events)
                }
                Err(error) => {
                    let passed = self.fail(&chain(&error), rest);
                    rest = (rest * 2).min(LONGEST_REST);
                    passed
                }
            };
            if passed.is_err() {
                return;
            }
        }
    }

    /// Passes events on. The survey looks at what they did, and at what is not heard any more.
    fn pass(&mut self, events: &[Event]) -> Result<(), Gone> {
        let changed = self.warnings.replace(self.events.warnings());
        for event in events {
            self.send(Message::Event(event.clone()))?;
        }
        if !events.is_empty() {
            return self.order(Order::Count);
        }
        if changed {
            return self.order(Order::Look);
        }
        Ok(())
    }

    fn send(&self, line: Message) -> Result<(), Gone> {
        self.lines.blocking_send(line).map_err(|_| Gone)
    }

    /// Says that nothing is heard, and rests.
    fn fail(&self, error: &str, rest: Duration) -> Result<(), Gone> {
        let seconds = rest.as_secs();
        tracing::warn!(%error, "no events are heard; trying again in {seconds} s");
        self.warnings
            .replace(vec![format!("no events are heard: {error}")]);
        // The survey finds out which card is behind it.
        self.order(Order::Look)?;
        self.rest(rest);
        Ok(())
    }

    fn order(&self, order: Order) -> Result<(), Gone> {
        self.orders.send(order).map_err(|_| Gone)
    }

    fn rest(&self, time: Duration) {
        let step = Duration::from_millis(100);
        let mut left = time;
        while !left.is_zero() && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(step.min(left));
            left = left.saturating_sub(step);
        }
    }
}

// === impl Warnings ===

impl Warnings {
    /// What is not heard now.
    pub(super) fn current(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Puts these in the place of those before; `false` where they are the same.
    fn replace(&self, warnings: Vec<String>) -> bool {
        let mut now = self.lock();
        let changed = *now != warnings;
        *now = warnings;
        changed
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
