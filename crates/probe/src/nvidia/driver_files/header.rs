//! The first bytes of a library: for which machine it is.

/// How many bytes tell it.
pub(super) const SIZE: u64 = 20;

/// The machines whose drivers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86,
    Arm,
}

/// What the first bytes of a file say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A library for a 64-bit machine.
    Wide(Machine),
    /// One for a 32-bit machine.
    Narrow,
    /// Something else.
    Unknown,
}

// === impl Header ===

impl Header {
    pub(super) fn of(bytes: &[u8]) -> Self {
        // Class, byte order, and after the sixteen bytes of identity the kind and the machine.
        let [0x7f, b'E', b'L', b'F', class, 1, ..] = bytes else {
            return Self::Unknown;
        };
        match (class, bytes.get(18..20)) {
            (1, Some(_)) => Self::Narrow,
            (2, Some([62, 0])) => Self::Wide(Machine::X86),
            (2, Some([183, 0])) => Self::Wide(Machine::Arm),
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn bytes(class: u8, machine: u8) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        bytes.resize(18, 0);
        bytes.extend([machine, 0]);
        bytes
    }

    #[rstest]
    #[case(&bytes(2, 62), Header::Wide(Machine::X86))]
    #[case(&bytes(2, 183), Header::Wide(Machine::Arm))]
    #[case(&bytes(1, 3), Header::Narrow)]
    #[case(&bytes(2, 21), Header::Unknown)]
    #[case(&bytes(2, 62)[..19], Header::Unknown)]
    #[case(b"", Header::Unknown)]
    #[case(b"#!/bin/sh\n", Header::Unknown)]
    fn tells_the_machine(#[case] bytes: &[u8], #[case] header: Header) {
        assert_eq!(Header::of(bytes), header);
    }
}
