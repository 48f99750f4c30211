//! Generated UUIDs and serial numbers, the same for the same node.

use crate::bus::BusId;

/// UUID in the driver's form, the same for the same parts.
pub fn made_up_uuid(kind: &str, parts: &[&str]) -> String {
    let high = fnv_digest(parts, 0x243f_6a88_85a3_08d3);
    let low = fnv_digest(parts, 0x1319_8a2e_0370_7344);
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0x0fff);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{kind}-{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

/// Serial number of thirteen digits, the same for the same card.
pub fn serial(profile: &str, pci: BusId) -> String {
    let number = fnv_digest(&[profile, &pci.to_string()], 0xa409_3822_299f_31d0) % 10_000_000_000;
    format!("132{number:010}")
}

/// FNV-1a with a final mix. Stable over Rust versions, unlike the standard hasher.
fn fnv_digest(parts: &[&str], seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}
