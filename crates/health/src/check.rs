//! The checks: each one finds one kind of fault of a device, and finds its end.

use std::borrow::Cow;

use model::{CauseKind, ConditionName, Tier};

/// One check. A check ends the finding that it began, and no other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Fails if the driver reports the device as lost.
    Lost,
    /// Fails if the driver does not list the device.
    Gone,
    /// Fails if a driver call does not return, or the driver does not start.
    NotAnswering,
    /// Fails if the probe process does not run.
    MonitorDown,
    /// Fails on uncorrected memory errors since the driver was loaded.
    Ecc,
    /// Fails if memory repairs wait for a reset.
    RepairPending,
    /// Fails if a memory repair failed.
    RepairFailed,
    /// Fails if the driver asks for a recovery action, such as a reset.
    Recovery,
    /// Fails if the hardware throttles its clocks.
    Throttled,
    /// Fails if the PCIe link has fewer lanes than it can have.
    PcieWidth,
    /// Fails if the PCIe link of a busy device is below its highest generation.
    PcieGeneration,
    /// Fails on new errors of direct links to other cards.
    LinkErrors,
    /// Fails if a direct link to another card is down.
    LinksDown,
    /// Fails if the temperature is within a margin of the limit.
    Temperature,
    /// Fails if corrected memory errors grow too fast.
    EccCorrectedRate,
    /// Fails if repaired memory rows grow too fast.
    RepairRate,
    /// Fails if PCIe replays grow too fast.
    ReplayRate,
    /// Fails if the mean power is above its limit.
    Power,
    /// Fails if the user's command (`health.deepCommand`) fails.
    Deep,
    /// A condition with a name of the vendor's, in the readings of this tier.
    Condition(Tier, ConditionName),
}

/// Prefix of the saved name of a condition: `condition:TIER:NAME`.
const CONDITION: &str = "condition";

/// Tiers whose readings can have conditions, with their names in the state file.
const TIERS: [(Tier, &str); 4] = [
    (Tier::Working, "working"),
    (Tier::Performing, "performing"),
    (Tier::Trend, "trend"),
    (Tier::Deep, "deep"),
];

// === impl Check ===

impl Check {
    /// All checks except conditions, in the order in which causes are listed.
    pub const ALL: [Self; 19] = [
        Self::Lost,
        Self::Gone,
        Self::NotAnswering,
        Self::MonitorDown,
        Self::Ecc,
        Self::RepairPending,
        Self::RepairFailed,
        Self::Recovery,
        Self::Throttled,
        Self::PcieWidth,
        Self::PcieGeneration,
        Self::LinkErrors,
        Self::LinksDown,
        Self::Temperature,
        Self::EccCorrectedRate,
        Self::RepairRate,
        Self::ReplayRate,
        Self::Power,
        Self::Deep,
    ];

    /// Kind of the cause that the check finds.
    pub fn cause_kind(&self) -> CauseKind {
        match self {
            Self::Lost => CauseKind::Lost,
            Self::Gone => CauseKind::Gone,
            Self::NotAnswering => CauseKind::NotAnswering,
            Self::MonitorDown => CauseKind::MonitorDown,
            Self::Ecc => CauseKind::Ecc,
            Self::RepairPending | Self::RepairFailed => CauseKind::MemoryRepair,
            Self::Recovery => CauseKind::RecoveryAction,
            Self::Throttled => CauseKind::Throttled,
            Self::PcieWidth | Self::PcieGeneration => CauseKind::Pcie,
            Self::LinkErrors | Self::LinksDown => CauseKind::Link,
            Self::Temperature => CauseKind::Temperature,
            Self::EccCorrectedRate | Self::RepairRate | Self::ReplayRate | Self::Power => {
                CauseKind::Trend
            }
            Self::Deep => CauseKind::Deep,
            Self::Condition(..) => CauseKind::Condition,
        }
    }

    /// Tier of the check: how often it is made, and its default weight.
    pub fn tier(&self) -> Tier {
        match self {
            Self::Lost | Self::Gone | Self::NotAnswering | Self::MonitorDown => Tier::Present,
            Self::Ecc | Self::RepairPending | Self::RepairFailed | Self::Recovery => Tier::Working,
            Self::Throttled
            | Self::PcieWidth
            | Self::PcieGeneration
            | Self::LinkErrors
            | Self::LinksDown
            | Self::Temperature => Tier::Performing,
            Self::EccCorrectedRate | Self::RepairRate | Self::ReplayRate | Self::Power => {
                Tier::Trend
            }
            Self::Deep => Tier::Deep,
            Self::Condition(tier, _) => *tier,
        }
    }

    /// Name of the check in the state file. Must not change: an older or newer agent reads it.
    pub(crate) fn saved_name(&self) -> Cow<'static, str> {
        let name = match self {
            Self::Lost => "lost",
            Self::Gone => "gone",
            Self::NotAnswering => "not-answering",
            Self::MonitorDown => "monitor-down",
            Self::Ecc => "ecc",
            Self::RepairPending => "repair-pending",
            Self::RepairFailed => "repair-failed",
            Self::Recovery => "recovery",
            Self::Throttled => "throttled",
            Self::PcieWidth => "pcie-width",
            Self::PcieGeneration => "pcie-generation",
            Self::LinkErrors => "link-errors",
            Self::LinksDown => "links-down",
            Self::Temperature => "temperature",
            Self::EccCorrectedRate => "ecc-corrected-rate",
            Self::RepairRate => "repair-rate",
            Self::ReplayRate => "replay-rate",
            Self::Power => "power",
            Self::Deep => "deep",
            Self::Condition(tier, name) => {
                let known = TIERS.iter().find(|(known, _)| known == tier);
                let tier = known.map_or("present", |(_, name)| name);
                return format!("{CONDITION}:{tier}:{name}").into();
            }
        };
        name.into()
    }

    /// Returns the check with a name from the state file, or with a name that older agents wrote
    /// for it. `None` for a name of another build.
    pub(crate) fn from_saved_name(name: &str) -> Option<Self> {
        match name {
            // Names that only NVIDIA has, from agents that knew no other vendor.
            "remap-pending" | "retirement-pending" => Some(Self::RepairPending),
            "remap-failed" => Some(Self::RepairFailed),
            "nvlink-errors" => Some(Self::LinkErrors),
            "nvlinks-down" => Some(Self::LinksDown),
            "remap-rate" => Some(Self::RepairRate),
            // Older agents had the fabric as two checks; it is a condition of the vendor now.
            "fabric" | "fabric-joining" => Some(Self::Condition(Tier::Working, name.parse().ok()?)),
            name => Self::condition_named(name).or_else(|| {
                Self::ALL
                    .into_iter()
                    .find(|check| check.saved_name() == name)
            }),
        }
    }

    /// Parses `condition:TIER:NAME`. `None` for any other name.
    fn condition_named(name: &str) -> Option<Self> {
        // Three parts at most: what follows the second colon is the name, which has to parse as one.
        let mut parts = name.splitn(3, ':');
        if parts.next() != Some(CONDITION) {
            return None;
        }
        let tier = parts.next()?;
        let (tier, _) = TIERS.into_iter().find(|(_, known)| *known == tier)?;
        Some(Self::Condition(tier, parts.next()?.parse().ok()?))
    }

    /// Name of the condition, if the check is one.
    pub(crate) fn condition_name(&self) -> Option<&ConditionName> {
        match self {
            Self::Condition(_, name) => Some(name),
            _ => None,
        }
    }

    /// Describes the end of the finding, for a person.
    pub(crate) fn ends_when(&self) -> Cow<'static, str> {
        let ends = match self {
            Self::Lost => "the driver reads the device again",
            Self::Gone => "the driver lists the device again",
            Self::NotAnswering => "the driver answers again",
            Self::MonitorDown => "the probe reports again",
            Self::Ecc => "the counter reads 0 after a reset or a reload of the driver",
            Self::RepairPending => "a reset or a reload of the driver made the repairs",
            Self::RepairFailed => {
                "the driver does not report it any more; the card wants replacing"
            }
            Self::Recovery => "the driver asks for nothing any more",
            Self::Throttled => "the hardware does not slow itself down any more",
            Self::PcieWidth => "the link has all its lanes again",
            Self::PcieGeneration => {
                "the link is at its highest generation again, or an operator uncordons the card"
            }
            Self::LinkErrors => "a reading finds no new errors",
            Self::LinksDown => "all links are up again",
            Self::Temperature => "the temperature is below the margin again",
            Self::EccCorrectedRate | Self::RepairRate | Self::ReplayRate => {
                "the growth within an hour is below its limit again"
            }
            Self::Power => "the mean power is below its limit again",
            Self::Deep => "the command passes",
            Self::Condition(_, name) => {
                return format!("the driver reports {name} as ok again").into();
            }
        };
        ends.into()
    }

    /// True if the finding means that the device is absent.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Lost | Self::Gone)
    }

    /// True if a reset of the device, or a reload of its driver, ends the finding. A condition says
    /// so itself in each reading.
    pub(crate) fn ends_with_reset(&self) -> bool {
        // A failed row remap is not in this list: it survives a reset, and the card has to be
        // replaced (NVML: nvmlDeviceGetRemappedRows, `failureOccurred`).
        matches!(self, Self::Ecc | Self::RepairPending | Self::Recovery)
    }
}
