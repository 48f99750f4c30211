//! CPU and memory affinity of cards.

use std::ffi::{c_uint, c_ulong};

use super::{
    call::CalledDevice,
    code::{INVALID_ARGUMENT, NOT_SUPPORTED, NvmlResult},
    nvml,
    wire::Out,
};

nvml! {
    // Node of the card's own memory; only coherent platforms have one.
    device nvmlDeviceGetNumaNodeId: (node: Out<c_uint>) |unit|
        node.set(unit.gpu.memory_numa.ok_or(NOT_SUPPORTED)?);
    device nvmlDeviceGetMemoryAffinity: (words: c_uint, set: Out<c_ulong>, scope: c_uint) |unit| {
        check_scope(scope)?;
        let node = unit.gpu.numa.ok_or(NOT_SUPPORTED)?;
        fill_mask(words, &set, std::iter::once(node))
    };
    device nvmlDeviceGetCpuAffinity: (words: c_uint, set: Out<c_ulong>) |unit|
        fill_mask(words, &set, near_cpus(unit));
    device nvmlDeviceGetCpuAffinityWithinScope: (words: c_uint, set: Out<c_ulong>, scope: c_uint) |unit| {
        check_scope(scope)?;
        fill_mask(words, &set, near_cpus(unit))
    };
    // The simulated machine has other CPUs than the real one. These calls change nothing, so that a
    // thread that binds itself to a card's CPUs stays where it is.
    device nvmlDeviceSetCpuAffinity, nvmlDeviceClearCpuAffinity: () |_unit| Ok(());
}

/// Fails unless the scope is a NUMA node or a socket. On the simulated machine both are the same.
fn check_scope(scope: c_uint) -> NvmlResult {
    (scope <= 1).then_some(()).ok_or(INVALID_ARGUMENT)
}

/// CPUs of the card's NUMA node.
pub(super) fn near_cpus(unit: &CalledDevice<'_>) -> impl Iterator<Item = c_uint> + use<> {
    let list = unit.state.cpus_near(unit.gpu.numa);
    let ranges: Vec<_> = list.split(',').filter_map(range).collect();
    ranges.into_iter().flatten()
}

fn range(text: &str) -> Option<std::ops::RangeInclusive<c_uint>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (
        first.trim().parse().ok()?,
        last.trim().parse::<c_uint>().ok()?,
    );
    // A hand-written state may have any number. No machine has more CPUs than this.
    (last < 1 << 20).then_some(first..=last)
}

/// Sets the bits of a mask of `words` words, which is the caller's room. Bits beyond it are
/// dropped.
fn fill_mask(words: c_uint, set: &Out<c_ulong>, bits: impl Iterator<Item = c_uint>) -> NvmlResult {
    if words == 0 {
        return Err(INVALID_ARGUMENT);
    }
    let words = usize::try_from(words)
        .map_err(|_| INVALID_ARGUMENT)?
        .min(1 << 15);
    let mut mask: Vec<c_ulong> = vec![0; words];
    for bit in bits {
        let (word, bit) = ((bit / c_ulong::BITS) as usize, bit % c_ulong::BITS);
        if let Some(word) = mask.get_mut(word) {
            *word |= 1 << bit;
        }
    }
    set.set_all(&mask)
}
