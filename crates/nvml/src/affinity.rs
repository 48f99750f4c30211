//! Which memory and which processors of the machine the driver thinks are near a card.

use std::ffi::{c_uint, c_ulong};

use nvml_wrapper_sys::bindings as sys;

use crate::{Device, Error, symbol};

/// How many words a set has: room for 8,192 processors, as many as Linux has at most. It has fewer
/// NUMA nodes.
const WORDS: c_uint = 128;

/// Room for a set of numbers.
type Set = [c_ulong; WORDS as usize];

// === impl Device ===

impl Device<'_> {
    /// The numbers of the NUMA nodes whose memory is near, in order. Where cards have NUMA nodes of
    /// their own, these may be among them.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn memory_affinity(&self) -> Result<Vec<u32>, Error> {
        let mut set: Set = [0; WORDS as usize];
        self.call(&symbol::MEMORY_AFFINITY, |get| {
            let scope = sys::NVML_AFFINITY_SCOPE_NODE;
            // SAFETY: the handle is the driver's, the pointer is valid for so many words.
            unsafe { get(self.raw(), WORDS, set.as_mut_ptr(), scope) }
        })?;
        Ok(numbers(&set))
    }

    /// The numbers of the processors that are near, in order.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn cpu_affinity(&self) -> Result<Vec<u32>, Error> {
        let mut set: Set = [0; WORDS as usize];
        self.call(&symbol::CPU_AFFINITY, |get| {
            // SAFETY: the handle is the driver's, the pointer is valid for so many words.
            unsafe { get(self.raw(), WORDS, set.as_mut_ptr()) }
        })?;
        Ok(numbers(&set))
    }
}

/// The numbers that are in a set: those of its bits.
fn numbers(set: &[c_ulong]) -> Vec<u32> {
    let bits = (0..c_ulong::BITS).cycle();
    let words = set.iter().flat_map(|word| [*word; c_ulong::BITS as usize]);
    let is_set = words.zip(bits).map(|(word, bit)| word >> bit & 1 == 1);
    (0..)
        .zip(is_set)
        .filter_map(|(number, is_set)| is_set.then_some(number))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_on_from_word_to_word() {
        let last = 1 << (c_ulong::BITS - 1);
        assert_eq!(numbers(&[0b101, 0, last]), [0, 2, 3 * c_ulong::BITS - 1]);
        assert_eq!(numbers(&[0; 3]), [0u32; 0]);
    }
}
