//! The checks: each thing that can be found wrong with a device, and found to be right again.

use std::borrow::Cow;

use model::{CauseKind, ConditionName, Tier};

/// One thing that is looked at. A check ends the trouble that it found, and no other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The driver lets it be read.
    Lost,
    /// The driver lists it.
    Gone,
    /// The driver answers.
    NotAnswering,
    /// Somebody looks.
    MonitorDown,
    /// Volatile uncorrectable memory errors.
    Ecc,
    /// Memory repairs that wait for a reset.
    RepairPending,
    /// Memory repairs that failed.
    RepairFailed,
    /// The driver asks for an action.
    Recovery,
    /// The hardware slows itself down.
    Throttled,
    /// Lanes of the PCIe link.
    PcieWidth,
    /// Generation of the PCIe link.
    PcieGeneration,
    /// Errors of direct links to other cards.
    LinkErrors,
    /// Direct links to other cards that are down.
    LinksDown,
    /// Temperature against its limit.
    Temperature,
    /// The rate of repaired memory errors.
    EccCorrectedRate,
    /// The rate of repaired memory rows.
    RepairRate,
    /// The rate of PCIe replays.
    ReplayRate,
    /// The mean power.
    Power,
    /// The user's command.
    Deep,
    /// A condition that the vendor names, in the readings of this tier.
    Condition(Tier, ConditionName),
}

/// The beginning of the name that a condition has in files that are kept.
const CONDITION: &str = "condition";

/// The tiers whose readings can have conditions, with their names in files that are kept.
const TIERS: [(Tier, &str); 4] = [
    (Tier::Working, "working"),
    (Tier::Performing, "performing"),
    (Tier::Trend, "trend"),
    (Tier::Deep, "deep"),
];

// === impl Check ===

impl Check {
    /// Every check but for conditions, in the order in which causes are listed.
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

    /// The kind of the cause that it finds.
    pub fn kind(&self) -> CauseKind {
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

    /// The tier that it belongs to.
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

    /// Its name in files that are kept.
    pub(crate) fn name(&self) -> Cow<'static, str> {
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

    /// The check of that name, or of the name that agents before this one wrote for it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "remap-pending" | "retirement-pending" => Some(Self::RepairPending),
            "remap-failed" => Some(Self::RepairFailed),
            "nvlink-errors" => Some(Self::LinkErrors),
            "nvlinks-down" => Some(Self::LinksDown),
            "remap-rate" => Some(Self::RepairRate),
            "fabric" | "fabric-joining" => Some(Self::Condition(Tier::Working, name.parse().ok()?)),
            name => Self::condition_named(name)
                .or_else(|| Self::ALL.into_iter().find(|check| check.name() == name)),
        }
    }

    fn condition_named(name: &str) -> Option<Self> {
        let mut parts = name.splitn(3, ':');
        if parts.next() != Some(CONDITION) {
            return None;
        }
        let tier = parts.next()?;
        let (tier, _) = TIERS.into_iter().find(|(_, known)| *known == tier)?;
        Some(Self::Condition(tier, parts.next()?.parse().ok()?))
    }

    /// The condition's name, where it is one.
    pub(crate) fn condition(&self) -> Option<&ConditionName> {
        match self {
            Self::Condition(_, name) => Some(name),
            _ => None,
        }
    }

    /// The end of the trouble that it found, for a person.
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

    /// Whether it means that the device is not there.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Lost | Self::Gone)
    }

    /// True if a reset of the device, or a new loading of its driver, ends what it found. A condition
    /// says so itself, each time that it is read.
    pub(crate) fn ends_with_reset(&self) -> bool {
        matches!(self, Self::Ecc | Self::RepairPending | Self::Recovery)
    }
}
