//! Facts about a card that never change, under NVIDIA's names.

use model::{Attributes, Value, names};
use nvml::Error;

/// NVML's architectures, by number. The names are those of the attribute `architecture` of NVIDIA's
/// DRA driver.
const ARCHITECTURES: [(u32, &str); 9] = [
    (2, "Kepler"),
    (3, "Maxwell"),
    (4, "Pascal"),
    (5, "Volta"),
    (6, "Turing"),
    (7, "Ampere"),
    (8, "Ada Lovelace"),
    (9, "Hopper"),
    (10, "Blackwell"),
];

/// NVML's brands, by number. The names are those of the attribute `brand` of NVIDIA's DRA driver.
const BRANDS: [(u32, &str); 16] = [
    (1, "Quadro"),
    (2, "Tesla"),
    (3, "NVS"),
    (4, "Grid"),
    (5, "GeForce"),
    (6, "Titan"),
    (7, "NvidiaVApps"),
    (8, "NvidiaVPC"),
    (9, "NvidiaVCS"),
    (10, "NvidiaVWS"),
    (11, "NvidiaCloudGaming"),
    (12, "QuadroRTX"),
    (13, "NvidiaRTX"),
    (14, "Nvidia"),
    (15, "GeForceRTX"),
    (16, "TitanRTX"),
];

/// Reads architecture and brand. A fact that the card does not support, or whose number has no name
/// here, is left out.
pub(super) fn read_constants(card: nvml::DeviceHandle<'_>) -> Result<Attributes, Error> {
    let architecture = supported(card.architecture())?;
    let brand = supported(card.brand())?;
    let facts = [
        (
            names::ARCHITECTURE,
            name_of_number(&ARCHITECTURES, architecture),
        ),
        (names::BRAND, name_of_number(&BRANDS, brand)),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    Ok(known.collect())
}

/// Converts "not supported" into `None`.
fn supported(answer: Result<u32, Error>) -> Result<Option<u32>, Error> {
    match answer {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_not_supported() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Looks up the name of a number.
fn name_of_number(table: &[(u32, &str)], number: Option<u32>) -> Option<Value> {
    let number = number?;
    let row = table.iter().find(|(known, _)| *known == number);
    row.map(|(_, name)| Value::from(*name))
}
