//! Cache of the dynamic loader, in the format of glibc's `ldconfig`.

use super::LibraryMachine;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const HEAD: usize = 48;
const ENTRY: usize = 24;

/// Builds a cache with libraries of one folder.
pub(super) fn cache(machine: LibraryMachine, folder: &str, names: &[String]) -> Vec<u8> {
    let flags: u32 = match machine {
        LibraryMachine::X86 => 0x0303,
        LibraryMachine::Arm => 0x0a03,
    };
    let mut names: Vec<_> = names.iter().collect();
    // The loader uses a binary search over names in descending order.
    names.sort();
    names.reverse();
    let (mut table, mut strings) = (Vec::new(), Vec::new());
    let start = HEAD + ENTRY * names.len();
    for name in &names {
        let mut place = |text: &str| {
            let at = to_u32(start + strings.len());
            strings.extend(text.as_bytes());
            strings.push(0);
            at
        };
        let words = [
            flags,
            place(name),
            place(&format!("/{folder}/{name}")),
            0,
            0,
            0,
        ];
        table.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    let mut bytes = MAGIC.to_vec();
    for word in [to_u32(names.len()), to_u32(strings.len()), 2] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(HEAD, 0);
    [bytes, table, strings].concat()
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
