//! NUMA nodes and processors that the driver reports as near to a card.

use std::ffi::{c_uint, c_ulong};

use nvml_wrapper_sys::bindings as sys;

use crate::{DeviceHandle, Error, symbol};

/// Length of a bit set in machine words: room for 8,192 bits on a 64-bit machine.
// 8,192 is the kernel's largest CONFIG_NR_CPUS (x86 with MAXSMP). NUMA nodes are fewer: at most
// 1,024 (CONFIG_NODES_SHIFT).
const WORDS: c_uint = 128;

/// Bit set that NVML fills: bit n stands for node or processor n.
type IndexSet = [c_ulong; WORDS as usize];

// === impl DeviceHandle ===

impl DeviceHandle<'_> {
    /// Reads the numbers of the near NUMA nodes, in ascending order. On machines where the memory
    /// of a card is a NUMA node itself (Grace), such nodes may be among them.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn memory_affinity(&self) -> Result<Vec<u32>, Error> {
        let mut set: IndexSet = [0; WORDS as usize];
        self.make_call(&symbol::MEMORY_AFFINITY, |get| {
            let scope = sys::NVML_AFFINITY_SCOPE_NODE;
            // SAFETY: the handle is the driver's, the pointer is valid for so many words.
            unsafe { get(self.raw_handle(), WORDS, set.as_mut_ptr(), scope) }
        })?;
        Ok(list_set_bits(&set))
    }

    /// Reads the numbers of the near processors, in ascending order.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn cpu_affinity(&self) -> Result<Vec<u32>, Error> {
        let mut set: IndexSet = [0; WORDS as usize];
        self.make_call(&symbol::CPU_AFFINITY, |get| {
            // SAFETY: the handle is the driver's, the pointer is valid for so many words.
            unsafe { get(self.raw_handle(), WORDS, set.as_mut_ptr()) }
        })?;
        Ok(list_set_bits(&set))
    }
}

/// Lists the positions of the bits that are set, in ascending order.
fn list_set_bits(set: &[c_ulong]) -> Vec<u32> {
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
        assert_eq!(
            list_set_bits(&[0b101, 0, last]),
            [0, 2, 3 * c_ulong::BITS - 1]
        );
        assert_eq!(list_set_bits(&[0; 3]), [0u32; 0]);
    }
}
