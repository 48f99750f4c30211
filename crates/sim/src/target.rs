//! Target of a command, as an operator types it.

use std::{fmt, str::FromStr};

use sim_node::{
    BusId,
    state::{DevicePlace, NodeState, by_uuid},
};

/// One device, or all cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceTarget {
    /// All cards.
    All,
    /// The card at this index: `3`.
    Index(usize),
    /// A MIG device by its card's index and its own: `3:1`.
    Mig(usize, usize),
    /// A card or MIG device by its UUID: `GPU-…`, `MIG-…`.
    Uuid(String),
    /// The card at this PCI address: `0000:07:00.0`.
    Pci(BusId),
}

/// A text that is no valid target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no device: give an index (3), a MIG index (3:1), a UUID, a PCI address or `all`"
)]
pub struct InvalidTarget(String);

/// A target that does not exist on this node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no device {target} on this node")]
pub struct MissingTarget {
    pub(crate) target: DeviceTarget,
}

// === impl DeviceTarget ===

impl DeviceTarget {
    /// Finds all positions of the target. The result is empty only for [`DeviceTarget::All`] on a node
    /// without cards.
    pub(crate) fn find_places(&self, state: &NodeState) -> Result<Vec<DevicePlace>, MissingTarget> {
        let one = |place: Option<DevicePlace>| {
            let target = self.clone();
            place.map(|p| vec![p]).ok_or(MissingTarget { target })
        };
        match self {
            Self::All => Ok((0..state.gpus.len()).map(|gpu| (gpu, None)).collect()),
            Self::Index(index) => one((*index < state.gpus.len()).then_some((*index, None))),
            Self::Mig(gpu, mig) => {
                let there = state.gpus.get(*gpu).is_some_and(|g| *mig < g.migs.len());
                one(there.then_some((*gpu, Some(*mig))))
            }
            Self::Uuid(uuid) => one(by_uuid(state, uuid)),
            Self::Pci(pci) => {
                let gpu = state.gpus.iter().position(|gpu| gpu.pci == *pci);
                one(gpu.map(|gpu| (gpu, None)))
            }
        }
    }
}

impl FromStr for DeviceTarget {
    type Err = InvalidTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidTarget(text.to_owned());
        if text == "all" {
            return Ok(Self::All);
        }
        if text.starts_with("GPU-") || text.starts_with("MIG-") {
            return Ok(Self::Uuid(text.to_owned()));
        }
        if let Ok(pci) = text.parse() {
            return Ok(Self::Pci(pci));
        }
        let number = |text: &str| text.parse().map_err(|_| invalid());
        match text.split_once(':') {
            Some((gpu, mig)) => Ok(Self::Mig(number(gpu)?, number(mig)?)),
            None => Ok(Self::Index(number(text)?)),
        }
    }
}

impl fmt::Display for DeviceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Index(index) => write!(f, "{index}"),
            Self::Mig(gpu, mig) => write!(f, "{gpu}:{mig}"),
            Self::Uuid(uuid) => f.write_str(uuid),
            Self::Pci(pci) => write!(f, "{pci}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeProfile;
    use rstest::rstest;

    #[rstest]
    #[case("3", DeviceTarget::Index(3))]
    #[case("3:1", DeviceTarget::Mig(3, 1))]
    #[case("all", DeviceTarget::All)]
    #[case("GPU-1", DeviceTarget::Uuid("GPU-1".to_owned()))]
    #[case("0000:07:00.0", DeviceTarget::Pci("0000:07:00.0".parse().unwrap()))]
    fn reads_what_a_person_types(#[case] text: &str, #[case] target: DeviceTarget) {
        assert_eq!(text.parse::<DeviceTarget>().unwrap(), target);
        assert_eq!(target.to_string(), text);
    }

    #[rstest]
    #[case("")]
    #[case("-1")]
    #[case("a")]
    #[case("1:")]
    #[case("1:2:3")]
    fn refuses_and_says_what_it_takes(#[case] text: &str) {
        let error = text.parse::<DeviceTarget>().unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{text}`")) && error.contains("UUID"),
            "{error}"
        );
    }

    #[test]
    fn finds_cards_and_partitions_by_each_name() {
        let state = NodeProfile::find_profile("a100-mig")
            .unwrap()
            .to_state()
            .unwrap();
        let find = |text: &str| text.parse::<DeviceTarget>().unwrap().find_places(&state);
        assert_eq!(find("1:3"), Ok(vec![(1, Some(3))]));
        assert_eq!(find(&state.gpus[1].migs[3].uuid), Ok(vec![(1, Some(3))]));
        assert_eq!(find("00000000:BD:00.0"), Ok(vec![(7, None)]));
        assert_eq!(find("all").unwrap().len(), 8);
        assert!(find("8").is_err() && find("7:0").is_err() && find("GPU-x").is_err());
    }
}
