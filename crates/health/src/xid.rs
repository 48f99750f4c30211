//! What NVIDIA's driver errors (XIDs) mean for the card they name.

/// What an XID says about its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A program on the card failed; the card is fine.
    Application,
    /// The card cannot be trusted until it was reset.
    Card,
}

/// XIDs that a faulty program causes on a healthy card.
const APPLICATION: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// The names of the XIDs that operators meet most.
const NAMES: [(u64, &str); 20] = [
    (13, "graphics engine exception"),
    (31, "GPU memory page fault"),
    (32, "invalid or corrupted push buffer stream"),
    (43, "GPU stopped processing"),
    (45, "preemptive cleanup after earlier errors"),
    (48, "double-bit ECC error"),
    (61, "internal micro-controller breakpoint"),
    (62, "internal micro-controller halt"),
    (63, "row remapping or page retirement recorded"),
    (64, "row remapping or page retirement failed"),
    (68, "video processor exception"),
    (69, "graphics engine class error"),
    (74, "NVLink error"),
    (79, "GPU has fallen off the bus"),
    (92, "high rate of single-bit ECC errors"),
    (94, "contained memory error"),
    (95, "uncontained memory error"),
    (109, "context switch timeout"),
    (119, "GSP RPC timeout"),
    (120, "GSP error"),
];

/// What `xid` says about its card. An unknown one is held against the card.
pub fn meaning(xid: u64) -> Meaning {
    match APPLICATION.contains(&xid) {
        true => Meaning::Application,
        false => Meaning::Card,
    }
}

/// `XID 79 (GPU has fallen off the bus)`.
pub fn describe(xid: u64) -> String {
    match NAMES.iter().find(|(number, _)| *number == xid) {
        Some((_, name)) => format!("XID {xid} ({name})"),
        None => format!("XID {xid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_faulty_program_is_not_held_against_the_card() {
        assert_eq!(meaning(13), Meaning::Application);
        assert_eq!(meaning(79), Meaning::Card);
        assert_eq!(meaning(u64::MAX), Meaning::Card);
    }

    #[test]
    fn unknown_numbers_are_named_by_number() {
        assert_eq!(describe(79), "XID 79 (GPU has fallen off the bus)");
        assert_eq!(describe(4242), "XID 4242");
    }
}
