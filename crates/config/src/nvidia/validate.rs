//! Checks that NVIDIA's plugin makes after it has merged flags and file, and warnings for values
//! that it takes and that cannot work.

use std::path::Path;

use super::merge::{FlagMerge, MergedValue};
use crate::{
    Handover, ListStrategy, Mig, ValueOrigin,
    backends::{check_annotation_prefix as prefix_fault, relative},
    source::{list_words, parse_word, unlike},
};

/// Returns the list strategies, sorted and without duplicates.
pub(super) fn validate_lists(merge: &mut FlagMerge<'_>) -> (Vec<ListStrategy>, ValueOrigin) {
    let file = &merge.file.flags.plugin.device_list_strategy;
    let key = "flags.plugin.deviceListStrategy";
    let Some(pick) = merge.given_or_file("device-list-strategy", key, file) else {
        return (vec![ListStrategy::Envvar], ValueOrigin::Default);
    };
    // `auto` is a strategy of ours alone.
    let ours = |word: &&&str| **word == "auto";
    let words = list_words::<ListStrategy>().iter();
    let words: Vec<&str> = words.filter(|word| !ours(word)).copied().collect();
    let mut found = Vec::new();
    for name in &pick.value {
        match parse_word(name) {
            Ok(strategy) if strategy != ListStrategy::Auto => found.push(strategy),
            _ => {
                let (message, mut help) = unlike(name, &words);
                if name.contains(',') {
                    help = "in a file, write a list: [envvar, cdi-cri]".to_owned();
                }
                merge.note_flag_error(&pick, message, help);
            }
        }
    }
    found.sort();
    found.dedup();
    (found, pick.origin)
}

/// Returns the IMEX channels: none, or 0. NVIDIA's plugin refuses any other
/// (api/config/v1/imex.go).
pub(super) fn validate_imex(merge: &mut FlagMerge<'_>) -> (Vec<u32>, ValueOrigin) {
    let file = &merge.file.imex.channel_ids;
    let Some(pick) = merge.given_or_file("imex-channel-ids", "imex.channelIDs", file) else {
        return (Vec::new(), ValueOrigin::Default);
    };
    let channels = match pick.value[..] {
        [] => Vec::new(),
        [0] => vec![0],
        _ => {
            let message = format!("IMEX channels {:?} cannot be had", pick.value);
            merge.note_flag_error(&pick, message, "write [] or [0]");
            Vec::new()
        }
    };
    (channels, pick.origin)
}

/// Warns of relative paths of folders on the host. NVIDIA's plugin takes any text.
pub(super) fn warn_relative_roots(
    merge: &mut FlagMerge<'_>,
    dev: &MergedValue<String>,
    mps: &MergedValue<String>,
) {
    let roots = [(dev, "/run/nvidia/driver"), (mps, "/run/nvidia/mps")];
    for (pick, example) in roots {
        if !pick.value.is_empty()
            && let Some((message, help)) = relative(Path::new(&pick.value), example)
        {
            merge.note_flag_warning(pick, message, help);
        }
    }
}

/// Warns of a text that cannot begin the CDI annotation's key. NVIDIA's plugin takes any text.
pub(super) fn warn_prefix(merge: &mut FlagMerge<'_>, pick: &MergedValue<String>) {
    if let Some((message, help)) = prefix_fault(&pick.value) {
        merge.note_flag_warning(pick, message, help);
    }
}

/// Checks that sharing through MPS is possible. The plugin refuses the same two cases.
pub(super) fn validate_mps(
    merge: &mut FlagMerge<'_>,
    mig: &(MergedValue<String>, Mig),
    handover: &Handover,
) {
    let Some(mps) = &merge.file.mps else { return };
    let place = mps.place;
    if mig.1 == Mig::Mixed {
        let message = "MIG devices cannot be shared through MPS, and mig-strategy is mixed";
        let help = "set mig-strategy to none or single, or use timeSlicing";
        merge.note_file_problem(
            crate::ProblemSeverity::Error,
            place,
            "sharing.mps",
            (message.to_owned(), help),
        );
    }
    if handover.nvidia.mps_root.is_none() {
        let message = "MPS needs the folder of its daemon, and mps-root is empty".to_owned();
        let help = "set --mps-root, MPS_ROOT or flags.mpsRoot, e.g. to /run/nvidia/mps";
        merge.note_file_problem(
            crate::ProblemSeverity::Error,
            place,
            "sharing.mps",
            (message, help),
        );
    }
}
