mod conditions;
mod cures;
mod hand;
mod presence;
mod restart;
mod since_reset;

use std::time::Duration;

use jiff::Timestamp;
use model::{CallFailure, CauseKind, Reading, State, StuckCall, Values, Verdict, sample::lost};

use super::*;
use config::EventAction as Action;
use nvidia_rules::{VENDORS, xid};

use crate::{Continuity, Saved};

const SAME: Continuity = Continuity {
    same_boot: true,
    same_driver: true,
};

/// A record with a policy and a clock.
struct Bench {
    record: Record,
    policy: Policy,
    second: u64,
}

impl Bench {
    fn new() -> Self {
        Self {
            record: Record::default(),
            policy: Policy {
                health: config::Health {
                    deep_command: vec!["check".to_owned()],
                    ..config::Health::default()
                },
                vendors: VENDORS,
                ..Policy::default()
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

    fn see(&mut self, sight: Sight<'_>) -> &mut Self {
        self.record.see(sight, &self.policy, at(self.second));
        self
    }

    fn well(&mut self) -> &mut Self {
        self.see(Sight::Seen(&[]))
    }

    fn lose(&mut self) -> &mut Self {
        self.see(Sight::Unreadable(&lost()))
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
        let event = xid::code(number);
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
        self.record.read(&reading, &self.policy, at(self.second));
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
        let saved = self.record.save(self.now());
        let kept = serde_json::to_string(&saved).unwrap();
        let saved = serde_json::from_str(&kept).unwrap();
        self.record = Record::restore(saved, continuity, &self.policy, self.now());
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
