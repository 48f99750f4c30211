//! Times of the attempts to register: spacing and backoff.

use std::time::Duration;

use tokio::time::Instant;

/// Time between two attempts: at least `spacing`, doubled by each failure after the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryTimer {
    spacing: Duration,
    delay: Duration,
    setbacks: u32,
    last: Option<Instant>,
    not_before: Option<Instant>,
}

// === impl RetryTimer ===

impl RetryTimer {
    pub(crate) fn new(spacing: Duration) -> Self {
        Self {
            spacing,
            delay: spacing,
            setbacks: 0,
            last: None,
            not_before: None,
        }
    }

    /// Time at which the next attempt may begin.
    pub(crate) fn next_attempt(&self) -> Instant {
        let spaced = self.last.map(|last| last + self.delay);
        spaced.max(self.not_before).unwrap_or_else(Instant::now)
    }

    /// Delays the next attempt by at least `time` from now.
    pub(crate) fn delay_by(&mut self, time: Duration) {
        self.not_before = Some(Instant::now() + time);
    }

    /// Records that an attempt begins now, or that it is answered now.
    // On a busy node the kubelet receives the call later than it was made. Measured from the answer, the
    // gap between two calls is no shorter at the kubelet than here.
    pub(crate) fn mark(&mut self) {
        self.last = Some(Instant::now());
    }

    /// Records that an attempt failed. The next one waits for at most `most`.
    pub(crate) fn back_off(&mut self, most: Duration) {
        let factor = 2_u32.saturating_pow(self.setbacks);
        self.delay = self
            .spacing
            .saturating_mul(factor)
            .min(most)
            .max(self.spacing);
        self.setbacks += 1;
    }

    /// Resets the delay to the shortest one.
    pub(crate) fn reset_delay(&mut self) {
        *self = Self {
            last: self.last,
            not_before: self.not_before,
            ..Self::new(self.spacing)
        };
    }

    /// Time since the last attempt was answered, or else began; `Duration::MAX` if there was none.
    pub(crate) fn age(&self) -> Duration {
        self.last.map_or(Duration::MAX, |last| last.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn begins_at_once_and_doubles_after_setbacks_up_to_the_limit() {
        let mut pace = RetryTimer::new(SECOND);
        assert!(pace.next_attempt() <= Instant::now());
        let mut delays = Vec::new();
        for _ in 0..8 {
            pace.mark();
            delays.push((pace.next_attempt() - Instant::now()).as_secs());
            pace.back_off(30 * SECOND);
        }
        assert_eq!(delays, [1, 1, 2, 4, 8, 16, 30, 30]);
        pace.reset_delay();
        assert_eq!(pace.next_attempt() - Instant::now(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_is_kept_even_when_the_delay_is_over_or_begins_anew() {
        let mut pace = RetryTimer::new(SECOND);
        pace.mark();
        tokio::time::advance(2 * SECOND).await;
        pace.delay_by(SECOND / 10);
        pace.reset_delay();
        assert_eq!(pace.next_attempt() - Instant::now(), SECOND / 10);
    }
}
