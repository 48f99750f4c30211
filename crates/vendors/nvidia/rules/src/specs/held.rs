//! CDI names that containers were started with, converted to handovers: specs are then made in one
//! way for pools and for running containers.

use std::collections::BTreeSet;

use config::{Handover, IdStrategy, ListStrategy};

use crate::{
    companions::{GDRCOPY, GDS, IMEX_CHANNEL, MOFED},
    kinds::{ALL, GPU, VENDOR},
};

/// Returns the handovers that request these names.
pub(super) fn handovers(names: &BTreeSet<String>) -> Vec<Handover> {
    let mut wish = Handover {
        lists: vec![ListStrategy::CdiCri],
        ..Handover::default()
    };
    let mut ids = BTreeSet::new();
    for (class, device) in names.iter().filter_map(|name| split_cdi_name(name)) {
        match class {
            // `all` is in every spec that has another name.
            GPU if device == ALL => {}
            // An index begins with a digit, a UUID with a letter.
            GPU => drop(ids.insert(device.starts_with(|first: char| first.is_ascii_digit()))),
            IMEX_CHANNEL => wish.nvidia.imex.extend(device.parse::<u32>()),
            GDRCOPY => wish.nvidia.gdrcopy = true,
            GDS => wish.nvidia.gds = true,
            MOFED => wish.nvidia.mofed = true,
            _ => {}
        }
    }
    if ids.is_empty() && !names.is_empty() {
        ids.insert(false);
    }
    let wishes = ids.into_iter().map(|index| Handover {
        ids: match index {
            true => IdStrategy::Index,
            false => IdStrategy::Uuid,
        },
        ..wish.clone()
    });
    wishes.collect()
}

/// Splits a name of NVIDIA's kinds into class and device; `None` for other names.
fn split_cdi_name(name: &str) -> Option<(&str, &str)> {
    let name = name.strip_prefix(VENDOR)?.strip_prefix('/')?;
    name.split_once('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        let ours = names.iter().map(|name| format!("{VENDOR}/{name}"));
        ours.collect()
    }

    #[test]
    fn names_are_asked_for_as_pools_would() {
        assert_eq!(handovers(&BTreeSet::new()), []);
        let all = names(&["gpu=GPU-a", "gpu=3:1", "gds=all", "imex-channel=7"]);
        let wishes = handovers(&all);
        let ids: Vec<_> = wishes.iter().map(|wish| wish.ids).collect();
        assert_eq!(ids, [IdStrategy::Uuid, IdStrategy::Index]);
        assert!(
            wishes
                .iter()
                .map(|wish| &wish.nvidia)
                .all(|wish| wish.gds && !wish.gdrcopy && !wish.mofed)
        );
        assert_eq!(wishes[0].nvidia.imex, [7]);
        let wsl = handovers(&names(&["gpu=all"]));
        assert_eq!(wsl.len(), 1);
    }
}
