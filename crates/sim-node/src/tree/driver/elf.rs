//! Small shared libraries: a header, a soname and no functions. A dynamic loader accepts them, and
//! so does a program that reads their tables.

use std::{os::unix::ffi::OsStrExt as _, path::Path};

use crate::state::NodeState;

/// Machine architecture whose drivers are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tree) enum LibraryMachine {
    X86,
    Arm,
}

/// Sizes of the file header, and of an entry of each table (ELF64).
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
const SYMBOL: usize = 24;

const SEGMENTS: usize = 3;
const NAMES: &[u8] = b"\0.dynstr\0.dynamic\0.shstrtab\0";

// === impl LibraryMachine ===

impl LibraryMachine {
    /// Architecture that this program runs on.
    pub(in crate::tree) const HERE: Self = match cfg!(target_arch = "aarch64") {
        true => Self::Arm,
        false => Self::X86,
    };

    /// Architecture of a state: some boards exist only with Grace processors, which are arm64.
    pub(in crate::tree) fn machine_of_state(state: &NodeState) -> Self {
        let names = state.models.values().map(|model| model.name.as_str());
        let is_grace = |name: &str| ["GH200", "GB200", "GB300"].iter().any(|b| name.contains(b));
        match names.into_iter().any(is_grace) {
            true => Self::Arm,
            false => Self::X86,
        }
    }

    /// Debian's name of its library folder.
    pub(in crate::tree) fn triplet(self) -> &'static str {
        match self {
            Self::X86 => "x86_64-linux-gnu",
            Self::Arm => "aarch64-linux-gnu",
        }
    }

    /// Kernel's name of the architecture.
    pub(in crate::tree) fn kernel_name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    fn elf_number(self) -> u16 {
        match self {
            Self::X86 => 62,
            Self::Arm => 183,
        }
    }
}

/// Builds a library with this soname. If `needs` is given, loading the library loads that file,
/// too.
pub(super) fn shared_library(
    machine: LibraryMachine,
    soname: &str,
    needs: Option<&Path>,
) -> Vec<u8> {
    let mut strings = b"\0".to_vec();
    strings.extend(soname.as_bytes());
    strings.push(0);
    let needed = needs.map(|path| {
        let at = strings.len();
        strings.extend(path.as_os_str().as_bytes());
        strings.push(0);
        at
    });
    let strings_at = HEADER + SEGMENTS * SEGMENT;
    let symbols_at = (strings_at + strings.len()).next_multiple_of(8);
    let hash_at = symbols_at + SYMBOL;
    let dynamic_at = hash_at + 16;
    let mut dynamic: Vec<(u64, usize)> = needed.map(|at| (1, at)).into_iter().collect();
    dynamic.extend([
        (14, 1),
        (4, hash_at),
        (5, strings_at),
        (6, symbols_at),
        (10, strings.len()),
        (11, SYMBOL),
        (0, 0),
    ]);
    let names_at = dynamic_at + dynamic.len() * 16;
    let sections_at = (names_at + NAMES.len()).next_multiple_of(8);
    let size = sections_at + 4 * SECTION;

    let mut file = ElfWriter(Vec::with_capacity(size));
    file.header(machine, sections_at);
    // One segment with everything, one for the dynamic table, and a stack that is not executable.
    file.segment(1, 0, size, 0x1000);
    file.segment(2, dynamic_at, dynamic.len() * 16, 8);
    file.segment(0x6474_e551, 0, 0, 16);
    file.0.extend(&strings);
    // A symbol table with the null symbol only, and a hash table in which no lookup succeeds.
    file.0.resize(hash_at, 0);
    file.write_halves(&[1, 1, 0, 0]);
    for (tag, value) in &dynamic {
        file.write_words(&[*tag, wide(*value)]);
    }
    file.0.extend(NAMES);
    file.0.resize(sections_at + SECTION, 0);
    file.write_section((1, 3), (strings_at, strings.len()), (0, 0));
    file.write_section((9, 6), (dynamic_at, dynamic.len() * 16), (1, 16));
    file.write_section((18, 3), (names_at, NAMES.len()), (0, 0));
    file.0
}

/// Bytes of a file, little-endian.
#[derive(Debug)]
struct ElfWriter(Vec<u8>);

// === impl ElfWriter ===

impl ElfWriter {
    fn write_words(&mut self, words: &[u64]) {
        self.0
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn write_halves(&mut self, halves: &[u32]) {
        self.0
            .extend(halves.iter().flat_map(|half| half.to_le_bytes()));
    }

    fn quarters(&mut self, quarters: &[u16]) {
        self.0.extend(quarters.iter().flat_map(|q| q.to_le_bytes()));
    }

    fn header(&mut self, machine: LibraryMachine, sections_at: usize) {
        self.0.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        self.quarters(&[3, machine.elf_number()]);
        self.write_halves(&[1]);
        self.write_words(&[0, wide(HEADER), wide(sections_at)]);
        self.write_halves(&[0]);
        self.quarters(&[64, 56, 3, 64, 4, 3]);
    }

    /// Adds a program header for a part that is mapped at its own offset.
    fn segment(&mut self, kind: u32, at: usize, size: usize, align: u64) {
        self.write_halves(&[kind, 6]);
        let (at, size) = (wide(at), wide(size));
        self.write_words(&[at, at, at, size, size, align]);
    }

    /// Adds a section header: name and kind, place, linked section, and size of an entry.
    fn write_section(
        &mut self,
        (name, kind): (u32, u32),
        (at, size): (usize, usize),
        (link, entry): (u32, u64),
    ) {
        self.write_halves(&[name, kind]);
        self.write_words(&[2, wide(at), wide(at), wide(size)]);
        self.write_halves(&[link, 0]);
        self.write_words(&[8, entry]);
    }
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
