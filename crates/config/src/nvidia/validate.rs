//! Checks that NVIDIA's plugin makes after it has merged flags and file, and warnings for values
//! that it takes and that cannot work.

use std::path::Path;

use super::merge::{Merge, Pick};
use crate::{
    Handover, ListStrategy, Mig, Origin,
    backends::{prefix as prefix_fault, relative},
    source::{unlike, word, words},
};

/// Returns the list strategies, sorted and without duplicates.
pub(super) fn lists(merge: &mut Merge<'_>) -> (Vec<ListStrategy>, Origin) {
    let file = &merge.file.flags.plugin.device_list_strategy;
    let key = "flags.plugin.deviceListStrategy";
    let Some(pick) = merge.said("device-list-strategy", key, file) else {
        return (vec![ListStrategy::Envvar], Origin::Default);
    };
    // `auto` is a strategy of ours alone.
    let ours = |word: &&&str| **word == "auto";
    let words = words::<ListStrategy>().iter();
    let words: Vec<&str> = words.filter(|word| !ours(word)).copied().collect();
    let mut found = Vec::new();
    for name in &pick.value {
        match word(name) {
            Ok(strategy) if strategy != ListStrategy::Auto => found.push(strategy),
            _ => {
                let (message, mut help) = unlike(name, &words);
                if name.contains(',') {
                    help = "in a file, write a list: [envvar, cdi-cri]".to_owned();
                }
                merge.error(&pick, message, help);
            }
        }
    }
    found.sort();
    found.dedup();
    (found, pick.origin)
}

/// Returns the IMEX channels: none, or 0. NVIDIA's plugin refuses any other
/// (api/config/v1/imex.go).
pub(super) fn imex(merge: &mut Merge<'_>) -> (Vec<u32>, Origin) {
    let file = &merge.file.imex.channel_ids;
    let Some(pick) = merge.said("imex-channel-ids", "imex.channelIDs", file) else {
        return (Vec::new(), Origin::Default);
    };
    let channels = match pick.value[..] {
        [] => Vec::new(),
        [0] => vec![0],
        _ => {
            let message = format!("IMEX channels {:?} cannot be had", pick.value);
            merge.error(&pick, message, "write [] or [0]");
            Vec::new()
        }
    };
    (channels, pick.origin)
}

/// Warns of relative paths of folders on the host. NVIDIA's plugin takes any text.
pub(super) fn roots(merge: &mut Merge<'_>, dev: &Pick<String>, mps: &Pick<String>) {
    let roots = [(dev, "/run/nvidia/driver"), (mps, "/run/nvidia/mps")];
    for (pick, example) in roots {
        if !pick.value.is_empty()
            && let Some((message, help)) = relative(Path::new(&pick.value), example)
        {
            merge.warn(pick, message, help);
        }
    }
}

/// Warns of a text that cannot begin the CDI annotation's key. NVIDIA's plugin takes any text.
pub(super) fn prefix(merge: &mut Merge<'_>, pick: &Pick<String>) {
    if let Some((message, help)) = prefix_fault(&pick.value) {
        merge.warn(pick, message, help);
    }
}

/// Checks that sharing through MPS is possible. The plugin refuses the same two cases.
pub(super) fn sharing(merge: &mut Merge<'_>, mig: &(Pick<String>, Mig), handover: &Handover) {
    let Some(mps) = &merge.file.mps else { return };
    let place = mps.place;
    if mig.1 == Mig::Mixed {
        let message = "MIG devices cannot be shared through MPS, and mig-strategy is mixed";
        let help = "set mig-strategy to none or single, or use timeSlicing";
        merge.at(
            crate::Severity::Error,
            place,
            "sharing.mps",
            (message.to_owned(), help),
        );
    }
    if handover.nvidia.mps_root.is_none() {
        let message = "MPS needs the folder of its daemon, and mps-root is empty".to_owned();
        let help = "set --mps-root, MPS_ROOT or flags.mpsRoot, e.g. to /run/nvidia/mps";
        merge.at(
            crate::Severity::Error,
            place,
            "sharing.mps",
            (message, help),
        );
    }
}
