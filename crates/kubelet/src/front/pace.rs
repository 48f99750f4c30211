//! How often a registration may be tried.

use std::time::Duration;

use tokio::time::Instant;

/// The time between two attempts: at least `spacing`, and twice as much with each setback after
/// the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    spacing: Duration,
    delay: Duration,
    setbacks: u32,
    last: Option<Instant>,
    rest: Option<Instant>,
}

// === impl Pace ===

impl Pace {
    pub(crate) fn new(spacing: Duration) -> Self {
        Self {
            spacing,
            delay: spacing,
            setbacks: 0,
            last: None,
            rest: None,
        }
    }

    /// When the next attempt may begin.
    pub(crate) fn due(&self) -> Instant {
        let spaced = self.last.map(|last| last + self.delay);
        spaced.max(self.rest).unwrap_or_else(Instant::now)
    }

    /// Lets the next attempt wait at least that long from now.
    pub(crate) fn rest(&mut self, time: Duration) {
        self.rest = Some(Instant::now() + time);
    }

    /// Notes that an attempt begins now, or that it is answered now.
    // On a busy node the kubelet takes the call in later than it was made. Counted from the answer, two
    // calls are no nearer to each other at the kubelet than here.
    pub(crate) fn mark(&mut self) {
        self.last = Some(Instant::now());
    }

    /// Notes that an attempt led nowhere; the next one waits up to `most`.
    pub(crate) fn slow(&mut self, most: Duration) {
        let factor = 2_u32.saturating_pow(self.setbacks);
        self.delay = self
            .spacing
            .saturating_mul(factor)
            .min(most)
            .max(self.spacing);
        self.setbacks += 1;
    }

    /// Begins anew with the shortest delay.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            last: self.last,
            rest: self.rest,
            ..Self::new(self.spacing)
        };
    }

    /// Returns the time since the last attempt was answered, or else began.
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
        let mut pace = Pace::new(SECOND);
        assert!(pace.due() <= Instant::now());
        let mut delays = Vec::new();
        for _ in 0..8 {
            pace.mark();
            delays.push((pace.due() - Instant::now()).as_secs());
            pace.slow(30 * SECOND);
        }
        assert_eq!(delays, [1, 1, 2, 4, 8, 16, 30, 30]);
        pace.reset();
        assert_eq!(pace.due() - Instant::now(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_is_kept_even_when_the_delay_is_over_or_begins_anew() {
        let mut pace = Pace::new(SECOND);
        pace.mark();
        tokio::time::advance(2 * SECOND).await;
        pace.rest(SECOND / 10);
        pace.reset();
        assert_eq!(pace.due() - Instant::now(), SECOND / 10);
    }
}
