mod conditions;
mod cures;
mod hand;
mod presence;
mod restart;
mod since_reset;

use std::time::Duration;

use jiff::Timestamp;
use model::{
    CallFailure, CauseKind, Reading, State, StuckCall, Values, Verdict, sample::lost_call,
};

use super::*;
use config::EventAction as Action;
use nvidia_rules::{VENDORS, xid};

use crate::{Continuity, SavedDevice};

const SAME: Continuity = Continuity {
    same_boot: true,
    same_driver: true,
};

/// A record with a policy and a clock.
struct Bench {
    record: DeviceRecord,
    policy: HealthPolicy,
    second: u64,
}

impl Bench {
    fn new() -> Self {
        Self {
            record: DeviceRecord::default(),
            policy: HealthPolicy {
                health: config::Health {
                    deep_command: vec!["check".to_owned()],
                    ..config::Health::default()
                },
                vendors: VENDORS,
                ..HealthPolicy::default()
            },
            second: 0,
        }
    }

    fn now(&self) -> Now {
        at(self.second)
    }

    fn wait(&mut self, seconds: u64) -> &mut Self {
        self.second += seconds;
        self
    }

    fn see(&mut self, sight: Observation<'_>) -> &mut Self {
        self.record.observe(sight, &self.policy, at(self.second));
        self
    }

    fn well(&mut self) -> &mut Self {
        self.see(Observation::Seen(&[]))
    }

    fn lose(&mut self) -> &mut Self {
        self.see(Observation::Unreadable(&lost_call()))
    }

    /// Looks every ten seconds until the device is healthy. Returns the seconds that took.
    fn back_after(&mut self) -> u64 {
        let start = self.second;
        for _ in 0..1000 {
            if self.well().state() == State::Healthy {
                return self.second - start;
            }
            self.wait(10);
        }
        panic!("it never comes back: {:?}", self.verdict());
    }

    /// Takes in an XID. Returns true if the device is out then.
    fn xid(&mut self, number: u64) -> bool {
        let event = xid::xid_code(number);
        self.record.happen(event, &self.policy, at(self.second));
        self.state() == State::Unhealthy
    }

    fn read(&mut self, values: Values) -> &mut Self {
        let reading = Reading {
            values,
            conditions: Vec::new(),
            unsupported: Vec::new(),
            failures: Vec::new(),
        };
        self.record
            .record_reading(&reading, &self.policy, at(self.second));
        self
    }

    fn verdict(&self) -> Verdict {
        self.record.verdict(&self.policy, self.now())
    }

    fn state(&self) -> State {
        self.verdict().state
    }

    fn kinds(&self) -> Vec<CauseKind> {
        self.verdict().causes.iter().map(|c| c.kind).collect()
    }

    fn warnings(&self) -> Vec<CauseKind> {
        self.verdict().warnings.iter().map(|c| c.kind).collect()
    }

    /// Restarts the agent: saves and restores the record through JSON.
    fn restart(&mut self, continuity: Continuity) -> &mut Self {
        let saved = self.record.to_saved(self.now());
        let kept = serde_json::to_string(&saved).unwrap();
        let saved = serde_json::from_str(&kept).unwrap();
        self.record = DeviceRecord::from_saved(saved, continuity, &self.policy, self.now());
        self
    }
}

fn at(seconds: u64) -> Now {
    let uptime = Duration::from_secs(seconds);
    Now {
        wall: Timestamp::UNIX_EPOCH + uptime,
        uptime,
    }
}

fn hung() -> StuckCall {
    StuckCall {
        call: "nvmlDeviceGetMemoryInfo".to_owned(),
        device: None,
        since: Timestamp::UNIX_EPOCH,
        work: model::Work::Survey,
    }
}
