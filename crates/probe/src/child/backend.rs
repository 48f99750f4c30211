//! Interface of a vendor's backend to the probe process.

use std::time::Duration;

use model::{Event, Tier};

use crate::protocol::{Checkup, Report, Sample};

/// Backend of one vendor: reads facts about the vendor's devices and decides nothing. Every method
/// may block in a driver call; each such call must be recorded in the call table.
pub trait ProbeBackend: Send + 'static {
    /// Returns the name of the backend: `nvidia`.
    fn backend_name(&self) -> &'static str;

    /// Reads all devices. Includes only the links that are known already, so the first report is
    /// fast.
    fn survey_devices(&mut self) -> Report;

    /// Adds the links that are not known yet; with `again` reads all of them. Returns false if the
    /// driver was not asked.
    fn add_new_links(&mut self, report: &mut Report, again: bool) -> bool;

    /// Adds the driver's files that the survey left for later. Returns false if there are none to
    /// add.
    fn add_driver_files(&mut self, report: &mut Report) -> bool {
        let _ = report;
        false
    }

    /// Returns true if a change since the last survey needs another one at once. Called every two
    /// seconds, so it must be cheap.
    fn needs_survey(&mut self) -> bool {
        false
    }

    /// Reads the sensors of the devices of the last survey.
    fn read_samples(&mut self) -> Vec<Sample>;

    /// Reads one tier of checks of the devices of the last survey. Reads link facts only if `links`
    /// is true.
    fn read_checkups(&mut self, tier: Tier, links: bool) -> Vec<Checkup> {
        let _ = (tier, links);
        Vec::new()
    }

    /// Creates the source of the devices' events, for the event thread; `None` if the vendor has
    /// none.
    fn open_events(&self) -> Option<Box<dyn EventSource>>;
}

/// Source of the events of a backend's devices.
pub trait EventSource: Send {
    /// Waits for the next events, at most for `timeout`; then returns an empty list.
    ///
    /// # Errors
    /// The driver gives no events now. The caller pauses and tries again.
    fn wait_events(&mut self, timeout: Duration) -> Result<Vec<Event>, WatchError>;

    /// Returns one sentence for each device whose events cannot be received, as of the last wait.
    /// Devices that support no events are left out.
    fn list_warnings(&self) -> Vec<String>;
}

/// Error of a wait for events, in the driver's words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WatchError(pub String);
