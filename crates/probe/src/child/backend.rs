//! What a vendor's backend does for the probe process.

use std::time::Duration;

use model::{Event, Tier};

use crate::protocol::{Checkup, Report, Sample};

/// A vendor's way to look at its devices. It reports facts and decides nothing.
pub trait Backend: Send + 'static {
    /// Its name: `nvidia`.
    fn name(&self) -> &'static str;

    /// Looks at everything. Links are those that are known already: the first look is quick.
    fn survey(&mut self) -> Report;

    /// Adds links that are not known yet, or all of them `again`; `false` where nothing was asked.
    fn links(&mut self, report: &mut Report, again: bool) -> bool;

    /// Adds what the first look left for later; `false` where there is nothing of the kind.
    fn files(&mut self, report: &mut Report) -> bool {
        let _ = report;
        false
    }

    /// Whether something changed since the last look that must not wait for the next. Asked for
    /// often: cheap.
    fn glance(&mut self) -> bool {
        false
    }

    /// Reads the sensors of the devices that were last seen.
    fn samples(&mut self) -> Vec<Sample>;

    /// What a tier of checks reads of the devices that were last seen; what it asks of their links
    /// only where `links` are wanted.
    fn checkups(&mut self, tier: Tier, links: bool) -> Vec<Checkup> {
        let _ = (tier, links);
        Vec::new()
    }

    /// What happens to the devices, for a thread of its own; `None` where the vendor has no events.
    fn events(&self) -> Option<Box<dyn Events>>;
}

/// What happens to a backend's devices.
pub trait Events: Send {
    /// Waits for the next events; none in time is an empty list.
    ///
    /// # Errors
    /// The driver cannot be listened to; the caller rests before it tries again.
    fn wait(&mut self, timeout: Duration) -> Result<Vec<Event>, WatchError>;

    /// The devices that the last wait did not listen to although it should, a sentence for each. A
    /// device that has no events is none of them.
    fn warnings(&self) -> Vec<String>;
}

/// Why a driver cannot be listened to, in its words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WatchError(pub String);
