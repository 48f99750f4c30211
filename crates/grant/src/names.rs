//! The names by which a container's runtime is told its devices.

use config::IdStrategy;
use model::Device;

/// The names of `devices`: UUIDs in the order given, or the driver's indices in the order of
/// their numbers. A device without an index keeps its UUID, after all that have one.
pub(crate) fn names<'a>(devices: &[&'a Device], strategy: IdStrategy) -> Vec<&'a str> {
    let mut names: Vec<&str> = devices.iter().map(|d| name(d, strategy)).collect();
    if strategy == IdStrategy::Index {
        names.sort_by_key(|name| (number(name).is_none(), number(name), *name));
    }
    names
}

pub(crate) fn name(device: &Device, strategy: IdStrategy) -> &str {
    let index = match strategy {
        IdStrategy::Uuid => None,
        IdStrategy::Index => device.index.as_deref(),
    };
    index.unwrap_or_else(|| device.id.as_str())
}

/// `3` and `3:0` as numbers; nothing else is one.
fn number(index: &str) -> Option<(u32, Option<u32>)> {
    match index.split_once(':') {
        Some((card, part)) => Some((card.parse().ok()?, Some(part.parse().ok()?))),
        None => Some((index.parse().ok()?, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn devices(all: &[(&str, Option<&str>)]) -> Vec<Device> {
        all.iter()
            .map(|(id, index)| Device {
                index: index.map(ToOwned::to_owned),
                ..Device::card_of("nvidia", *id, "A100")
            })
            .collect()
    }

    #[rstest]
    #[case::one(&[("GPU-a", Some("0"))], &["GPU-a"], &["0"])]
    #[case::by_number(
        &[("GPU-a", Some("10")), ("GPU-b", Some("9")), ("GPU-c", Some("0"))],
        &["GPU-a", "GPU-b", "GPU-c"], &["0", "9", "10"],
    )]
    #[case::partitions(
        &[("MIG-a", Some("1:10")), ("MIG-b", Some("1:2")), ("MIG-c", Some("0:3"))],
        &["MIG-a", "MIG-b", "MIG-c"], &["0:3", "1:2", "1:10"],
    )]
    #[case::cards_before_their_partitions(
        &[("MIG-a", Some("2:0")), ("GPU-b", Some("2")), ("GPU-c", Some("3"))],
        &["MIG-a", "GPU-b", "GPU-c"], &["2", "2:0", "3"],
    )]
    #[case::without_an_index(
        &[("GPU-a", None), ("GPU-b", Some("1"))],
        &["GPU-a", "GPU-b"], &["1", "GPU-a"],
    )]
    #[case::wsl(&[("all", Some("all"))], &["all"], &["all"])]
    #[case::tegra(&[("tegra", Some("0"))], &["tegra"], &["0"])]
    fn names_follow_the_strategy(
        #[case] all: &[(&str, Option<&str>)],
        #[case] uuids: &[&str],
        #[case] indices: &[&str],
    ) {
        let devices = devices(all);
        let devices: Vec<&Device> = devices.iter().collect();
        assert_eq!(names(&devices, IdStrategy::Uuid), uuids);
        assert_eq!(names(&devices, IdStrategy::Index), indices);
        let backwards: Vec<&Device> = devices.into_iter().rev().collect();
        assert_eq!(names(&backwards, IdStrategy::Index), indices);
    }
}
