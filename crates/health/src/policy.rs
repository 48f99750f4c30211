//! What weighs how much, and for how long. Plain data: a config is translated into it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{CauseKind, Tier};

use crate::{Check, XidPolicy};

/// The rules by which a record becomes a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A card whose driver does not answer, or fails, is Unknown for this long, then Unhealthy.
    pub unanswered: Duration,
    /// What becomes of devices that nobody looks at.
    pub monitor_loss: MonitorLoss,
    /// How a device comes back.
    pub hold_down: HoldDown,
    /// For how long a device is withheld on which a foreign process was found; doubles, too.
    pub residue: Duration,
    /// What a finding of each tier does.
    pub weights: Weights,
    /// Tiers that are not checked: what they found before counts no more, for nothing would end it.
    pub off: BTreeSet<Tier>,
    /// Where a value becomes a finding.
    pub thresholds: Thresholds,
    /// What XIDs mean.
    pub xid: XidPolicy,
}

/// What becomes of devices whose probe does not run. They are Unknown first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorLoss {
    /// What becomes of them.
    pub then: OnLoss,
    /// After how long.
    pub after: Duration,
}

/// What becomes of a device that nobody looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// It stays Unknown.
    #[default]
    Keep,
    /// It becomes Unhealthy.
    Drain,
}

/// A device comes back when its check passed several times over some time. Each time that the
/// same trouble begins again doubles that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldDown {
    /// How many looks in a row must find a device that was lost.
    pub passes: u32,
    /// How much time must pass from the first of these looks to the end of the trouble.
    pub first: Duration,
    /// The most that the doubling leads to.
    pub limit: Duration,
    /// Trouble that did not begin for this long is forgotten: the doubling begins anew.
    pub memory: Duration,
}

/// What a finding does to its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It takes the device out.
    Out,
    /// It is a warning.
    Warn,
    /// It is left out of account.
    Off,
}

/// A weight for each tier that can be configured, and exceptions by the kind of the cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Of [`Tier::Working`].
    pub working: Weight,
    /// Of [`Tier::Performing`].
    pub performing: Weight,
    /// Of [`Tier::Trend`].
    pub trend: Weight,
    /// Of [`Tier::Deep`].
    pub deep: Weight,
    /// What is otherwise for a kind of cause.
    pub kinds: BTreeMap<CauseKind, Weight>,
}

/// Where a value becomes a finding. An absent limit switches its check off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Volatile uncorrectable memory errors that are tolerated.
    pub ecc_uncorrected: u64,
    /// Joining the fabric may take this long before it is a warning.
    pub fabric_join: Duration,
    /// A temperature this close to where the hardware slows down, in degrees.
    pub temperature_margin: u32,
    /// From this utilization on, a PCIe generation below the highest is a finding.
    pub busy_percent: u32,
    /// NVLink errors between two readings that are tolerated.
    pub nvlink_errors: u64,
    /// Repaired memory errors in an hour that are tolerated.
    pub ecc_corrected_per_hour: Option<u64>,
    /// Rows remapped in an hour that are tolerated.
    pub remapped_rows_per_hour: Option<u64>,
    /// PCIe replays in an hour that are tolerated.
    pub pcie_replays_per_hour: Option<u64>,
    /// Mean power in watts that is tolerated.
    pub mean_watts: Option<u64>,
    /// The shortest time over which a mean power counts.
    pub mean_time: Duration,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            unanswered: Duration::from_secs(30),
            monitor_loss: MonitorLoss::default(),
            hold_down: HoldDown::default(),
            residue: Duration::from_secs(30),
            weights: Weights::default(),
            off: BTreeSet::new(),
            thresholds: Thresholds::default(),
            xid: XidPolicy::default(),
        }
    }
}

// === impl MonitorLoss ===

impl Default for MonitorLoss {
    fn default() -> Self {
        Self {
            then: OnLoss::Keep,
            after: Duration::from_secs(120),
        }
    }
}

// === impl HoldDown ===

impl Default for HoldDown {
    fn default() -> Self {
        Self {
            passes: 3,
            first: Duration::from_secs(20),
            limit: Duration::from_secs(15 * 60),
            memory: Duration::from_secs(60 * 60),
        }
    }
}

impl HoldDown {
    /// `first`, doubled for each time that the trouble began again, at most `limit`.
    pub(crate) fn doubled(&self, first: Duration, begun: u32) -> Duration {
        let factor = 1u32
            .checked_shl(begun.saturating_sub(1))
            .unwrap_or(u32::MAX);
        first.saturating_mul(factor).min(self.limit.max(first))
    }
}

// === impl Weights ===

impl Default for Weights {
    fn default() -> Self {
        Self {
            working: Weight::Out,
            performing: Weight::Warn,
            trend: Weight::Warn,
            deep: Weight::Warn,
            kinds: BTreeMap::new(),
        }
    }
}

impl Weights {
    /// What a finding of this check does.
    pub(crate) fn of(&self, check: Check) -> Weight {
        let tier = match check.tier() {
            Tier::Present => return Weight::Out,
            Tier::Working => self.working,
            Tier::Performing => self.performing,
            Tier::Trend => self.trend,
            Tier::Deep => self.deep,
        };
        let weight = self.kinds.get(&check.kind()).copied().unwrap_or(tier);
        match (check, weight) {
            // A fabric that is being joined may be all in order.
            (Check::FabricJoining, Weight::Out) => Weight::Warn,
            _ => weight,
        }
    }
}

// === impl Thresholds ===

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            ecc_uncorrected: 0,
            fabric_join: Duration::from_secs(10 * 60),
            temperature_margin: 5,
            busy_percent: 50,
            nvlink_errors: 0,
            ecc_corrected_per_hour: Some(100),
            remapped_rows_per_hour: Some(0),
            pcie_replays_per_hour: Some(100),
            mean_watts: None,
            mean_time: Duration::from_secs(60),
        }
    }
}
