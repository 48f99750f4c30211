//! PCI addresses, as the simulated machine writes and reads them.
//!
//! The product has a type of its own for addresses. The two share no code, so that a mistake in one
//! is not repeated in the other.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Address of a PCI function, which NVML calls bus id: `0000:07:00.0`.
///
/// ```
/// let pci: sim_node::BusId = "00000000:07:00.0".parse()?;
/// assert_eq!(pci.to_string(), "0000:07:00.0");
/// # Ok::<(), sim_node::InvalidBusId>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BusId {
    /// Domain; zero on most machines.
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number on the bus, below 32.
    pub device: u8,
    /// Function number of the device, below 8.
    pub function: u8,
}

/// A text that is not a PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a PCI address such as 0000:07:00.0")]
pub struct InvalidBusId(String);

// === impl BusId ===

impl BusId {
    /// Address of the first function of the first device on a bus of domain zero.
    pub fn on_bus(bus: u8) -> Self {
        Self {
            domain: 0,
            bus,
            device: 0,
            function: 0,
        }
    }

    /// Long form of NVML's `busId`: eight digits of domain, upper case.
    pub fn to_nvml_form(self) -> String {
        format!("{:0>16}", self.to_string().to_uppercase())
    }
}

impl fmt::Display for BusId {
    /// Writes the form of sysfs: at least four digits of domain, lower case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}", self.domain, self.bus)?;
        write!(f, ":{:02x}.{:x}", self.device, self.function)
    }
}

impl FromStr for BusId {
    type Err = InvalidBusId;

    /// Reads the forms of sysfs and NVML.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_bus_id(text).ok_or_else(|| InvalidBusId(text.to_owned()))
    }
}

impl TryFrom<String> for BusId {
    type Error = InvalidBusId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<BusId> for String {
    fn from(id: BusId) -> Self {
        id.to_string()
    }
}

/// Reads from the end, where each part has a fixed length: `:bb:dd.f`.
fn read_bus_id(text: &str) -> Option<BusId> {
    let (domain, rest) = text.split_at_checked(text.len().checked_sub(8)?)?;
    let [b':', b1, b0, b':', d1, d0, b'.', f] = rest.as_bytes() else {
        return None;
    };
    if !(4..=8).contains(&domain.len()) {
        return None;
    }
    let (device, function) = (parse_hex(&[*d1, *d0])?, parse_hex(&[*f])?);
    (device < 32 && function < 8).then_some(BusId {
        domain: parse_hex(domain.as_bytes())?,
        bus: u8::try_from(parse_hex(&[*b1, *b0])?).ok()?,
        device: u8::try_from(device).ok()?,
        function: u8::try_from(function).ok()?,
    })
}

/// Value of up to eight hexadecimal digits.
fn parse_hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, digit| {
        Some(sum << 4 | char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[test]
    fn reads_and_writes_both_forms() {
        let id: BusId = "0000:0f:1e.7".parse().unwrap();
        assert_eq!((id.domain, id.bus, id.device, id.function), (0, 15, 30, 7));
        assert_eq!(id.to_nvml_form(), "00000000:0F:1E.7");
        assert_eq!(id.to_nvml_form().parse(), Ok(id));
        let far: BusId = "12345678:0f:00.0".parse().unwrap();
        assert_eq!(far.to_string(), "12345678:0f:00.0");
        assert_eq!(far.to_nvml_form(), "12345678:0F:00.0");
    }

    #[rstest]
    #[case("")]
    #[case("0f:00.0")]
    #[case("000:0f:00.0")]
    #[case("000000000:0f:00.0")]
    #[case("0000:0f:20.0")]
    #[case("0000:0f:00.8")]
    #[case("0000:+f:00.0")]
    #[case("+000:0f:00.0")]
    #[case("0000:0f:00.0 ")]
    #[case("0000.0f:00.0")]
    #[case("0000:0é00.0")]
    fn refuses_and_names_the_text(#[case] text: &str) {
        let error = text.parse::<BusId>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{text}`")), "{error}");
    }

    proptest! {
        #[test]
        fn survives_both_forms(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
            let id = BusId { domain, bus, device, function };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(id.to_nvml_form().parse(), Ok(id));
        }

        #[test]
        fn never_panics(text in ".*") {
            let _ = text.parse::<BusId>();
        }
    }
}
