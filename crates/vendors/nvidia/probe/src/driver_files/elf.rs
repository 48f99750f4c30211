//! Parser of the few parts of an ELF file that tell the machine and the soname of a shared library.
//! A file that is not valid tells nothing.

/// Bytes that are needed to tell the machine.
pub(super) const SIZE: u64 = 20;

/// Sizes in bytes of the file header and of a program header, and the most program headers that are
/// read.
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const MOST_SEGMENTS: usize = 64;

/// Types of segments, `PT_LOAD` and `PT_DYNAMIC`, and the most bytes that are read of the latter.
const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
const MOST_DYNAMIC: usize = 64 << 10;

/// Tags of the dynamic section, `DT_STRTAB` and `DT_SONAME`.
const STRINGS: u64 = 5;
const SONAME: u64 = 14;

/// Most bytes of a soname.
const MOST_NAME: usize = 128;

/// Machines for which NVIDIA has 64-bit drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElfMachine {
    X86,
    Arm,
}

/// Kind of file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElfHeader {
    /// ELF file for a 64-bit machine.
    Wide(ElfMachine),
    /// ELF file for a 32-bit machine.
    Narrow,
    /// Another file.
    Unknown,
}

/// Part of the file, and the address where a loader maps it.
#[derive(Clone, Copy, Debug)]
struct ElfSegment {
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

// === impl ElfHeader ===

impl ElfHeader {
    pub(super) fn from_file_start(bytes: &[u8]) -> Self {
        // Class and byte order are bytes 4 and 5; type and machine follow the 16 bytes of identity.
        let [0x7f, b'E', b'L', b'F', class, 1, ..] = bytes else {
            return Self::Unknown;
        };
        match (class, bytes.get(18..20)) {
            (1, Some(_)) => Self::Narrow,
            (2, Some([62, 0])) => Self::Wide(ElfMachine::X86),
            (2, Some([183, 0])) => Self::Wide(ElfMachine::Arm),
            _ => Self::Unknown,
        }
    }
}

// === impl ElfSegment ===

impl ElfSegment {
    fn from_program_header(entry: &[u8]) -> Option<Self> {
        Some(Self {
            kind: read_little_endian::<4>(entry, 0)?,
            offset: read_little_endian::<8>(entry, 8)?,
            address: read_little_endian::<8>(entry, 16)?,
            size: read_little_endian::<8>(entry, 32)?,
        })
    }

    /// Returns the file offset of an address; `None` if the segment does not have it.
    fn file_offset(&self, address: u64) -> Option<u64> {
        let inside = address.checked_sub(self.address)?;
        (self.kind == LOAD && inside < self.size).then(|| self.offset.checked_add(inside))?
    }
}

/// Returns the soname of a 64-bit library. `read` returns the bytes at an offset of the file, fewer
/// at its end.
pub(super) fn parse_soname(read: impl Fn(u64, usize) -> Option<Vec<u8>>) -> Option<String> {
    let head = read(0, HEADER)?;
    let ElfHeader::Wide(_) = ElfHeader::from_file_start(&head) else {
        return None;
    };
    if read_little_endian::<2>(&head, 54)? != u64::try_from(SEGMENT).ok()? {
        return None;
    }
    let count = usize::try_from(read_little_endian::<2>(&head, 56)?).ok()?;
    let table = read(
        read_little_endian::<8>(&head, 32)?,
        count.min(MOST_SEGMENTS) * SEGMENT,
    )?;
    let segments = || {
        table
            .chunks_exact(SEGMENT)
            .filter_map(ElfSegment::from_program_header)
    };
    let dynamic = segments().find(|segment| segment.kind == DYNAMIC)?;
    let size = usize::try_from(dynamic.size).map_or(MOST_DYNAMIC, |size| size.min(MOST_DYNAMIC));
    let entries = read(dynamic.offset, size)?;
    let find = |tag: u64| {
        let mut entries = entries.chunks_exact(16);
        let entry = entries.find(|entry| read_little_endian::<8>(entry, 0) == Some(tag))?;
        read_little_endian::<8>(entry, 8)
    };
    let (strings, name) = (find(STRINGS)?, find(SONAME)?);
    // `DT_STRTAB` is an address and not a file offset.
    let strings = segments().find_map(|segment| segment.file_offset(strings))?;
    let bytes = read(strings.checked_add(name)?, MOST_NAME)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// Returns the little-endian number of `N` bytes at an offset.
fn read_little_endian<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(bytes.get(at..at.checked_add(N)?)?);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Makes a library for this machine (62 is x86-64, 183 AArch64, 3 a 32-bit x86) with this
    /// soname. Its addresses differ from its file offsets, as in real libraries.
    pub(in super::super) fn make_library(machine: u8, soname: &str) -> Vec<u8> {
        const AWAY: u64 = 0x20_0000;
        let class = if machine == 3 { 1 } else { 2 };
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        bytes.resize(16, 0);
        bytes.extend([3, 0, machine, 0, 1, 0, 0, 0]);
        bytes.extend([0_u64, 64, 0].map(u64::to_le_bytes).concat());
        bytes.extend([0, 0, 0, 0, 64, 0, 56, 0, 2, 0]);
        bytes.resize(HEADER, 0);
        let dynamic = u64::try_from(HEADER + 2 * SEGMENT).unwrap();
        let strings = dynamic + 48;
        let size = strings + u64::try_from(soname.len()).unwrap() + 2;
        for (kind, at, size) in [(LOAD, 0, size), (DYNAMIC, dynamic, 48)] {
            let words = [kind, at, at + AWAY, at + AWAY, size, size, 8];
            bytes.extend(words.map(u64::to_le_bytes).concat());
        }
        let words = [STRINGS, strings + AWAY, SONAME, 1, 0, 0];
        bytes.extend(words.map(u64::to_le_bytes).concat());
        bytes.push(0);
        bytes.extend(soname.as_bytes());
        bytes.push(0);
        bytes
    }

    fn name(bytes: &[u8]) -> Option<String> {
        parse_soname(|at, size| {
            let rest = bytes.get(usize::try_from(at).ok()?..)?;
            Some(rest[..size.min(rest.len())].to_vec())
        })
    }

    #[rstest]
    #[case(&make_library(62, "x"), ElfHeader::Wide(ElfMachine::X86))]
    #[case(&make_library(183, "x"), ElfHeader::Wide(ElfMachine::Arm))]
    #[case(&make_library(3, "x"), ElfHeader::Narrow)]
    #[case(&make_library(21, "x"), ElfHeader::Unknown)]
    #[case(&make_library(62, "x")[..19], ElfHeader::Unknown)]
    #[case(b"", ElfHeader::Unknown)]
    #[case(b"#!/bin/sh\n", ElfHeader::Unknown)]
    fn tells_the_machine(#[case] bytes: &[u8], #[case] header: ElfHeader) {
        assert_eq!(ElfHeader::from_file_start(bytes), header);
    }

    #[test]
    fn tells_the_soname() {
        let bytes = make_library(62, "libcuda.so.1");
        assert_eq!(name(&bytes).as_deref(), Some("libcuda.so.1"));
        let arm = make_library(183, "libcuda.so.1");
        assert_eq!(name(&arm).as_deref(), Some("libcuda.so.1"));
        for end in 0..bytes.len() {
            assert_eq!(name(&bytes[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn a_name_that_does_not_end_is_none() {
        assert_eq!(name(&make_library(62, &"x".repeat(MOST_NAME))), None);
        assert_eq!(name(&make_library(3, "libcuda.so.1")), None);
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn tells_the_soname_of_a_library_that_is_in_use() {
        let maps = fs_err::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps
            .lines()
            .filter_map(|line| Some(&line[line.find('/')?..]));
        let libc = paths.find(|path| path.contains("/libc.so.6")).unwrap();
        let found = name(&fs_err::read(libc).unwrap());
        assert_eq!(found.as_deref(), Some("libc.so.6"));
    }

    proptest! {
        #[test]
        fn never_panics(at in 16_usize..200, byte: u8, tail in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut bytes = make_library(62, "libcuda.so.1");
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
            bytes.extend(tail);
            let _ = name(&bytes);
        }
    }
}
