//! Event thread: waits for events and forwards them; warns if events cannot be received.

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

/// Timeout of one wait for events. Also the time until the thread notices a change of the cards.
const WAIT: Duration = Duration::from_secs(1);

/// Shortest and longest pause after a wait that failed; the pause doubles with each failure.
// NVIDIA's device plugin retries at once and spins while the error persists
// (internal/rm/health.go).
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// State of the event thread.
pub(super) struct Listener {
    pub(super) events: Box<dyn Events>,
    pub(super) lines: mpsc::Sender<Message>,
    pub(super) orders: orders::Sender<Order>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) calls: Arc<Calls>,
    pub(super) warnings: Warnings,
}

/// Warnings of the event thread, which the survey adds to its reports.
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

    /// Forwards events. Orders a survey if there were events, or if the warnings changed.
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

    /// Reports that no events are received, and pauses.
    fn fail(&self, error: &str, rest: Duration) -> Result<(), Gone> {
        let seconds = rest.as_secs();
        tracing::warn!(%error, "no events are heard; trying again in {seconds} s");
        self.warnings
            .replace(vec![format!("no events are heard: {error}")]);
        // The survey finds the card that is the cause.
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
    /// Returns the current warnings.
    pub(super) fn current(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Replaces the warnings. Returns false if they are the same as before.
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
