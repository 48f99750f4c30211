//! As much of a program's file as its size needs.

/// The type of a segment that is loaded.
const LOAD: u32 = 1;

/// The bytes of a 64-bit little-endian ELF file that are loaded; `None` if it is something else.
pub(crate) fn loaded(file: &[u8]) -> Option<u64> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(u64::from_le_bytes(bytes(file, 0x20)?)).ok()?;
    let entry = usize::from(u16::from_le_bytes(bytes(file, 0x36)?));
    let count = usize::from(u16::from_le_bytes(bytes(file, 0x38)?));
    let mut size = 0u64;
    for number in 0..count {
        let at = table.checked_add(number * entry)?;
        if u32::from_le_bytes(bytes(file, at)?) == LOAD {
            size = size.checked_add(u64::from_le_bytes(bytes(file, at.checked_add(0x20)?)?))?;
        }
    }
    Some(size)
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_loaded_of_this_very_program() {
        let file = fs_err::read("/proc/self/exe").unwrap();
        let size = usize::try_from(loaded(&file).unwrap()).unwrap();
        assert!(size > 0 && size < file.len(), "{size} of {}", file.len());
    }

    #[test]
    fn a_text_or_half_a_program_is_none() {
        assert_eq!(loaded(b"#!/bin/sh"), None);
        let file = fs_err::read("/proc/self/exe").unwrap();
        assert_eq!(loaded(&file[..0x30]), None);
    }
}
