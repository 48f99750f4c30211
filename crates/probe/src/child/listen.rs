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
    EventSource, chain,
    work::{ChannelClosed, SurveyOrder},
};
use crate::{CallTable, protocol::Message};

/// Timeout of one wait for events. Also the time until the thread notices a change of the cards.
const WAIT: Duration = Duration::from_secs(1);

/// Shortest and longest pause after a wait that failed; the pause doubles with each failure.
// NVIDIA's device plugin retries at once and spins while the error persists
// (internal/rm/health.go).
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// State of the event thread.
pub(super) struct EventListener {
    pub(super) events: Box<dyn EventSource>,
    pub(super) lines: mpsc::Sender<Message>,
    pub(super) orders: orders::Sender<SurveyOrder>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) calls: Arc<CallTable>,
    pub(super) warnings: EventWarnings,
}

/// Warnings of the event thread, which the survey adds to its reports.
#[derive(Clone, Debug, Default)]
pub(super) struct EventWarnings(Arc<Mutex<Vec<String>>>);

// === impl EventListener ===

impl EventListener {
    pub(super) fn listen_until_stopped(mut self) {
        let mut rest = FIRST_REST;
        while !self.stop.load(Ordering::Relaxed) {
            let Self { calls, events, .. } = &mut self;
            let heard = calls.during(model::Work::Events, || events.wait_events(WAIT));
            let passed = match heard {
                Ok(events) => {
                    rest = FIRST_REST;
                    self.forward_events(&events)
                }
                Err(error) => {
                    let passed = self.report_wait_error(&chain(&error), rest);
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
    fn forward_events(&mut self, events: &[Event]) -> Result<(), ChannelClosed> {
        let changed = self.warnings.replace(self.events.list_warnings());
        for event in events {
            self.send_line(Message::Event(event.clone()))?;
        }
        if !events.is_empty() {
            return self.send_survey_order(SurveyOrder::CountFirst);
        }
        if changed {
            return self.send_survey_order(SurveyOrder::Survey);
        }
        Ok(())
    }

    fn send_line(&self, line: Message) -> Result<(), ChannelClosed> {
        self.lines.blocking_send(line).map_err(|_| ChannelClosed)
    }

    /// Reports that no events are received, and pauses.
    fn report_wait_error(&self, error: &str, rest: Duration) -> Result<(), ChannelClosed> {
        let seconds = rest.as_secs();
        tracing::warn!(%error, "no events are heard; trying again in {seconds} s");
        self.warnings
            .replace(vec![format!("no events are heard: {error}")]);
        // The survey finds the card that is the cause.
        self.send_survey_order(SurveyOrder::Survey)?;
        self.pause_unless_stopped(rest);
        Ok(())
    }

    fn send_survey_order(&self, order: SurveyOrder) -> Result<(), ChannelClosed> {
        self.orders.send(order).map_err(|_| ChannelClosed)
    }

    fn pause_unless_stopped(&self, time: Duration) {
        let step = Duration::from_millis(100);
        let mut left = time;
        while !left.is_zero() && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(step.min(left));
            left = left.saturating_sub(step);
        }
    }
}

// === impl EventWarnings ===

impl EventWarnings {
    /// Returns the current warnings.
    pub(super) fn current(&self) -> Vec<String> {
        self.lock_warnings().clone()
    }

    /// Replaces the warnings. Returns false if they are the same as before.
    fn replace(&self, warnings: Vec<String>) -> bool {
        let mut now = self.lock_warnings();
        let changed = *now != warnings;
        *now = warnings;
        changed
    }

    fn lock_warnings(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
