//! PCI addresses, in the form that sysfs uses.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Address of a PCI function: `domain:bus:device.function`, printed as in sysfs (`0000:07:00.0`).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// Text that is not a PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a PCI address such as 0000:07:00.0")]
pub struct InvalidPciAddress(String);

// === impl PciAddress ===

impl PciAddress {
    /// Creates an address from its numbers. Returns `None` if the device is above 31 or the
    /// function above 7.
    pub fn new(domain: u32, bus: u8, device: u8, function: u8) -> Option<Self> {
        // PCI has 5 bits for the device and 3 for the function.
        (device < 32 && function < 8).then_some(Self {
            domain,
            bus,
            device,
            function,
        })
    }

    /// Returns the address in NVML's form, with upper-case digits and a domain of eight digits:
    /// `00000000:07:00.0`.
    pub fn to_long_form(&self) -> String {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        format!("{domain:08X}:{bus:02X}:{device:02X}.{function:X}")
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = InvalidPciAddress;

    /// Accepts domains of four to eight hex digits, in either case, as sysfs and NVML write them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_pci_address(text).ok_or_else(|| InvalidPciAddress(text.to_owned()))
    }
}

impl TryFrom<String> for PciAddress {
    type Error = InvalidPciAddress;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

fn parse_pci_address(text: &str) -> Option<PciAddress> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    PciAddress::new(
        parse_hex_digits(domain, 4..=8)?,
        u8::try_from(parse_hex_digits(bus, 2..=2)?).ok()?,
        u8::try_from(parse_hex_digits(device, 2..=2)?).ok()?,
        u8::try_from(parse_hex_digits(function, 1..=1)?).ok()?,
    )
}

fn parse_hex_digits(digits: &str, length: std::ops::RangeInclusive<usize>) -> Option<u32> {
    // `from_str_radix` alone would accept a sign.
    let all_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    (length.contains(&digits.len()) && all_hex)
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_nvml_and_sysfs_write() {
        let address: PciAddress = "00000000:0F:00.0".parse().unwrap();
        assert_eq!(address.to_string(), "0000:0f:00.0");
        assert_eq!(address.to_long_form(), "00000000:0F:00.0");
        assert_eq!("0000:0f:00.0".parse(), Ok(address));
    }

    #[test]
    fn refuses_and_names_the_text() {
        for text in [
            "",
            "0f:00.0",
            "0000:0f:20.0",
            "0000:0f:00.8",
            "0000:+f:00.0",
            "0000:0f:00.0 ",
        ] {
            let error = text.parse::<PciAddress>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn survives_both_forms(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
            let address = PciAddress::new(domain, bus, device, function).unwrap();
            prop_assert_eq!(address.to_string().parse(), Ok(address));
            prop_assert_eq!(address.to_long_form().parse(), Ok(address));
        }

        #[test]
        fn never_panics(text in ".*") {
            let _ = text.parse::<PciAddress>();
        }
    }
}
