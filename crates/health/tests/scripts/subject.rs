//! The subject of the test: the health of a device, driven as the agent drives it.

use std::time::Duration;

use health::{Continuity, DeviceRecord, HealthPolicy, Now, Observation};
use jiff::Timestamp;
use model::{
    CallFailure, Condition, ConditionState, Deep, EventCode, Performing, Reading, SinceReset,
    StuckCall, Trend, Values, Verdict, Work, Working,
};

use crate::script::{Counts, Fabric, Named, Read, View};

/// Health of one device.
pub(crate) trait Subject: Default {
    fn see(&mut self, view: View, is_card: bool, policy: &HealthPolicy, now: Now);
    fn happen(&mut self, event: EventCode, policy: &HealthPolicy, now: Now);
    fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now);
    fn count(&mut self, counts: Counts, policy: &HealthPolicy);
    /// Stops the agent at one moment and starts it at another.
    fn restart(&mut self, same: Continuity, policy: &HealthPolicy, stop: Now, start: Now);
    fn verdict(&self, policy: &HealthPolicy, now: Now) -> Verdict;
    /// Gives access to methods in which no bug is planted.
    fn record(&mut self) -> &mut DeviceRecord;
}

impl Subject for DeviceRecord {
    fn see(&mut self, view: View, is_card: bool, policy: &HealthPolicy, now: Now) {
        let (lost, soft) = (failure(true), failure(false));
        let call = StuckCall {
            call: "nvmlDeviceGetHandleByIndex_v2".to_owned(),
            device: None,
            since: now.wall,
            work: Work::Survey,
        };
        let sight = match view {
            View::Well => Observation::Seen(&[]),
            View::Untold if is_card => Observation::Seen(std::slice::from_ref(&soft)),
            View::Untold => Observation::Unreported(&soft),
            View::Lost => Observation::Unreadable(&lost),
            View::Fatal => Observation::Seen(std::slice::from_ref(&lost)),
            View::Missing => Observation::Missing("not listed"),
            View::Stuck => Observation::Stuck(&call),
            View::Failed => Observation::DriverFailed("nvmlInit_v2: UNKNOWN"),
            View::NoDriver => Observation::NoDriver("no library"),
            View::Unwatched => Observation::Unmonitored("the probe exited"),
        };
        Self::observe(self, sight, policy, now);
    }

    fn happen(&mut self, event: EventCode, policy: &HealthPolicy, now: Now) {
        Self::happen(self, event, policy, now);
    }

    fn read(&mut self, read: &Read, policy: &HealthPolicy, now: Now) {
        Self::record_reading(self, &reading(read), policy, now);
    }

    fn count(&mut self, counts: Counts, policy: &HealthPolicy) {
        let counts = SinceReset {
            energy_millijoules: counts.energy.map(|joules| joules * 1000),
            pcie_replays: counts.replays,
            ecc_errors: counts.ecc,
            ..SinceReset::default()
        };
        Self::record_counters(self, &counts, policy);
    }

    fn restart(&mut self, same: Continuity, policy: &HealthPolicy, stop: Now, start: Now) {
        let text = serde_json::to_string(&self.to_saved(stop)).expect("a record is JSON");
        let saved = serde_json::from_str(&text).expect("what was kept is read");
        *self = Self::from_saved(saved, same, policy, start);
    }

    fn verdict(&self, policy: &HealthPolicy, now: Now) -> Verdict {
        Self::verdict(self, policy, now)
    }

    fn record(&mut self) -> &mut DeviceRecord {
        self
    }
}

/// Returns the moment at these two clocks, in seconds.
pub(crate) fn moment(wall: u64, uptime: u64) -> Now {
    Now {
        wall: Timestamp::UNIX_EPOCH + Duration::from_secs(wall),
        uptime: Duration::from_secs(uptime),
    }
}

fn failure(fatal: bool) -> CallFailure {
    CallFailure {
        call: "nvmlDeviceGetMemoryInfo".to_owned(),
        code: if fatal { "GPU_IS_LOST" } else { "UNKNOWN" }.to_owned(),
        fatal,
    }
}

fn reading(read: &Read) -> Reading {
    let failures = match read {
        Read::Fatal => vec![failure(true)],
        _ => Vec::new(),
    };
    Reading {
        values: values(read),
        conditions: match read {
            Read::Condition(named, state) => vec![condition(*named, *state)],
            Read::Fabric(Some(state)) => fabric(*state).into(),
            _ => Vec::new(),
        },
        unsupported: Vec::new(),
        failures,
    }
}

fn condition(named: Named, state: ConditionState) -> Condition {
    let name = match named {
        Named::Block => "ras.umc",
        Named::Cache => "ras.gfx",
        Named::Fan => "fan",
        Named::Slow => "training",
    };
    Condition {
        name: name.parse().expect("it is a name"),
        state,
        reason: String::new(),
        ends_with_reset: named == Named::Cache,
        grace_millis: if named == Named::Slow { 60_000 } else { 0 },
    }
}

fn fabric(state: Fabric) -> [Condition; 2] {
    let (refused, joining) = match state {
        Fabric::Joining => (ConditionState::Unknown, ConditionState::Warning),
        Fabric::Joined => (ConditionState::Ok, ConditionState::Ok),
        Fabric::Refused => (ConditionState::Critical, ConditionState::Ok),
    };
    let condition = |name: &str, state, grace_millis| Condition {
        name: name.parse().expect("it is a name"),
        state,
        reason: String::new(),
        ends_with_reset: true,
        grace_millis,
    };
    [
        condition("fabric", refused, 0),
        condition("fabric-joining", joining, 600_000),
    ]
}

/// Returns the values of a tier with one value set; the others were not read.
fn values(read: &Read) -> Values {
    let mut working = Working::default();
    let mut performing = Performing::default();
    match read.clone() {
        Read::Ecc(errors) => working.ecc_uncorrected = errors,
        Read::RepairPending(flag) => working.repair_pending = flag,
        Read::RepairFailed(flag) => working.repair_failed = flag,
        Read::Recovery(action) => working.recovery = action,
        Read::Corrected(errors) => {
            return Values::Trend(Trend {
                ecc_corrected: errors,
                ..Trend::default()
            });
        }
        Read::Deep(passed) => {
            let output = String::new();
            return Values::Deep(Deep { passed, output });
        }
        Read::Throttled(flag) => {
            let reason = |hot| if hot { "hw_slowdown" } else { "sw_power_cap" };
            performing.throttled = flag.map(|hot| vec![reason(hot).to_owned()]);
            return Values::Performing(performing);
        }
        Read::Lanes(lanes) => {
            (performing.pcie_width, performing.pcie_width_max) = (lanes, Some(16));
            return Values::Performing(performing);
        }
        Read::Generation(generation, busy) => {
            performing.pcie_generation = generation;
            performing.pcie_generation_max = Some(4);
            performing.utilization_percent = Some(busy);
            return Values::Performing(performing);
        }
        Read::LinkErrors(errors) => {
            performing.link_errors = errors;
            return Values::Performing(performing);
        }
        Read::LinksDown(down) => {
            performing.links_down = down;
            return Values::Performing(performing);
        }
        Read::Temperature(celsius) => {
            performing.temperature_celsius = celsius;
            performing.slowdown_celsius = Some(90);
            return Values::Performing(performing);
        }
        Read::Fabric(_) | Read::Condition(Named::Block | Named::Cache | Named::Slow, _) => {}
        Read::Condition(Named::Fan, _) | Read::Fatal => return Values::Performing(performing),
    }
    Values::Working(working)
}
