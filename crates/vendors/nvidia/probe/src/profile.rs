//! Names of MIG profiles such as `1g.5gb`, in the form of nvidia-smi, go-nvlib and NVIDIA's device
//! plugin.

use nvml::MigAttributes;

/// Parts from which a profile's name is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProfileParts<'a> {
    /// Slices and memory of the MIG device.
    pub(super) size: MigAttributes,
    /// Total memory of the card in bytes, if known.
    pub(super) card_bytes: Option<u64>,
    /// Suffix of the name: `+me`, or empty.
    pub(super) suffix: &'a str,
}

/// Returns the suffix of a GPU instance profile by its number in NVML's list; `None` for an unknown
/// number.
pub(super) fn known_suffix(number: u32) -> Option<&'static str> {
    Some(match number {
        0..=6 | 9 => "",
        7 | 8 => "+me",
        // go-nvlib's table ends at 16, and NVIDIA's device plugin fails on a card with 17 (three
        // slices with graphics).
        10..=12 | 17 => "+gfx",
        13 | 14 => "-me",
        15 | 16 => "+me.all",
        _ => return None,
    })
}

/// Returns the name `[<c>c.]<g>g.<gb>gb[suffix]`; `c` is present only if it differs from `g`.
pub(super) fn format_profile(shape: ProfileParts<'_>) -> String {
    let MigAttributes {
        gpu_slices: g,
        compute_slices: c,
        memory_mib,
    } = shape.size;
    let gb = profile_gigabytes(memory_mib, shape.card_bytes);
    let suffix = shape.suffix;
    if c == g {
        format!("{g}g.{gb}gb{suffix}")
    } else {
        format!("{c}c.{g}g.{gb}gb{suffix}")
    }
}

/// Returns the profile name inside NVML's name of a MIG device: `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
pub(super) fn from_device_name(name: &str) -> Option<&str> {
    let (_, profile) = name.rsplit_once("MIG ")?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'-');
    let profile = profile.trim();
    (profile.contains("gb") && profile.bytes().all(plain)).then_some(profile)
}

/// Returns the suffix of a profile's name.
pub(super) fn suffix_of(profile: &str) -> &str {
    profile.find("gb").map_or("", |at| &profile[at + 2..])
}

/// Returns the gigabytes in the name: the eighths of the card's memory, rounded up, times the
/// card's gigabytes, rounded up too. go-nvlib computes the same. Without the card's memory, the MIG
/// device's memory is rounded.
fn profile_gigabytes(mib: u64, card_bytes: Option<u64>) -> u128 {
    let bytes = u128::from(mib) << 20;
    let Some(card) = card_bytes.map(u128::from).filter(|card| *card > 0) else {
        return (bytes + (1 << 29)) >> 30;
    };
    let eighths = (8 * bytes).div_ceil(card);
    let card_gb = card.div_ceil(1 << 30);
    (eighths * card_gb + 4) / 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    const A100_40: u64 = 42_505_273_344;
    const A100_80: u64 = 85_899_345_920;
    const H100_80: u64 = 85_520_809_984;
    const H200: u64 = 150_754_820_096;
    const A30: u64 = 25_769_803_776;

    #[rstest]
    #[case(A100_40, 0, 1, 1, 4_864, "1g.5gb")]
    #[case(A100_40, 7, 1, 1, 4_864, "1g.5gb+me")]
    #[case(A100_40, 9, 1, 1, 9_856, "1g.10gb")]
    #[case(A100_40, 1, 2, 2, 9_856, "2g.10gb")]
    #[case(A100_40, 1, 2, 1, 9_856, "1c.2g.10gb")]
    #[case(A100_40, 2, 3, 3, 19_968, "3g.20gb")]
    #[case(A100_40, 3, 4, 4, 19_968, "4g.20gb")]
    #[case(A100_40, 4, 7, 7, 40_192, "7g.40gb")]
    #[case(A100_80, 0, 1, 1, 9_728, "1g.10gb")]
    #[case(A100_80, 7, 1, 1, 9_728, "1g.10gb+me")]
    #[case(A100_80, 9, 1, 1, 19_968, "1g.20gb")]
    #[case(A100_80, 2, 3, 3, 40_448, "3g.40gb")]
    #[case(A100_80, 4, 7, 7, 81_152, "7g.80gb")]
    #[case(H100_80, 0, 1, 1, 9_984, "1g.10gb")]
    #[case(H100_80, 2, 3, 3, 40_320, "3g.40gb")]
    #[case(H100_80, 4, 7, 7, 81_152, "7g.80gb")]
    #[case(H200, 0, 1, 1, 16_896, "1g.18gb")]
    #[case(H200, 4, 7, 7, 143_616, "7g.141gb")]
    #[case(A30, 0, 1, 1, 5_952, "1g.6gb")]
    #[case(A30, 8, 2, 2, 11_968, "2g.12gb+me")]
    #[case(A30, 3, 4, 4, 24_125, "4g.24gb")]
    fn names_shapes_as_the_vendor_does(
        #[case] card: u64,
        #[case] number: u32,
        #[case] gpu_slices: u32,
        #[case] compute_slices: u32,
        #[case] memory_mib: u64,
        #[case] expected: &str,
    ) {
        let shape = ProfileParts {
            size: MigAttributes {
                gpu_slices,
                compute_slices,
                memory_mib,
            },
            card_bytes: Some(card),
            suffix: known_suffix(number).unwrap(),
        };
        assert_eq!(format_profile(shape), expected);
    }

    #[rstest]
    #[case(10, Some("+gfx"))]
    #[case(13, Some("-me"))]
    #[case(16, Some("+me.all"))]
    #[case(17, Some("+gfx"))]
    #[case(18, None)]
    #[case(u32::MAX, None)]
    fn knows_the_suffix_of_each_profile(#[case] number: u32, #[case] expected: Option<&str>) {
        assert_eq!(known_suffix(number), expected);
    }

    #[rstest]
    #[case("NVIDIA A100-SXM4-40GB MIG 1g.5gb", Some("1g.5gb"), "")]
    #[case("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", Some("1g.10gb+me"), "+me")]
    #[case("NVIDIA RTX MIG 2g.24gb+me.all", Some("2g.24gb+me.all"), "+me.all")]
    #[case("NVIDIA A100-SXM4-40GB", None, "")]
    #[case("X MIG nonsense here", None, "")]
    fn finds_the_shape_in_the_device_name(
        #[case] text: &str,
        #[case] expected: Option<&str>,
        #[case] rest: &str,
    ) {
        let found = from_device_name(text);
        assert_eq!(found, expected);
        assert_eq!(suffix_of(found.unwrap_or_default()), rest);
    }

    proptest! {
        #[test]
        fn never_panics(g: u32, c: u32, memory_mib: u64, card: Option<u64>, text in ".*") {
            let size = MigAttributes { gpu_slices: g, compute_slices: c, memory_mib };
            let _ = format_profile(ProfileParts { size, card_bytes: card, suffix: "" });
            let _ = from_device_name(&text);
            let _ = suffix_of(&text);
        }
    }
}
