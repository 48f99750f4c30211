//! Names by which a container runtime knows the devices.

use config::IdStrategy;
use model::Device;

/// Returns the names of `devices`: UUIDs in the given order, or NVML indices sorted by number. A
/// device without an index keeps its UUID, after all that have one.
pub(crate) fn device_names(devices: &[&Device], strategy: IdStrategy) -> Vec<String> {
    let mut devices = devices.to_vec();
    if strategy == IdStrategy::Index {
        // NVIDIA's device plugin lists indices in random order, from a Go map. A fixed order keeps
        // requests repeatable.
        devices.sort_by_key(|device| (device.index.is_none(), device.index, &device.id));
    }
    devices
        .into_iter()
        .map(|device| device_name(device, strategy))
        .collect()
}

/// Returns the name of one device.
pub(crate) fn device_name(device: &Device, strategy: IdStrategy) -> String {
    let index = match strategy {
        IdStrategy::Uuid => None,
        IdStrategy::Index => device.index,
    };
    index.map_or_else(|| device.id.to_string(), |index| index.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn devices(all: &[(&str, Option<&str>)]) -> Vec<Device> {
        all.iter()
            .map(|(id, index)| Device {
                index: index.and_then(|index| index.parse().ok()),
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
    #[case::wsl(&[("all", None)], &["all"], &["all"])]
    #[case::tegra(&[("tegra", Some("0"))], &["tegra"], &["0"])]
    fn names_follow_the_strategy(
        #[case] all: &[(&str, Option<&str>)],
        #[case] uuids: &[&str],
        #[case] indices: &[&str],
    ) {
        let devices = devices(all);
        let devices: Vec<&Device> = devices.iter().collect();
        assert_eq!(device_names(&devices, IdStrategy::Uuid), uuids);
        assert_eq!(device_names(&devices, IdStrategy::Index), indices);
        let backwards: Vec<&Device> = devices.into_iter().rev().collect();
        assert_eq!(device_names(&backwards, IdStrategy::Index), indices);
    }
}
