//! Machines on which cards cannot be told apart. Under WSL a container gets all cards or none. A
//! Tegra board has one card, which may have no NVML.

use std::collections::{BTreeMap, btree_map::Entry};

use model::{
    Device, DeviceId, DeviceNode, Driver, Ecc, Index, NodeRole, SinceReset, Telemetry, names,
};
use probe::{protocol::Sample, sysfs::HostFiles};

/// Device node of all cards under WSL.
pub(super) const DXG: &str = "/dev/dxg";

/// Id of all cards together under WSL, as in NVIDIA's device plugin.
pub(super) const ALL: &str = "all";
/// Id of a Tegra board's card, as in NVIDIA's device plugin.
pub(super) const TEGRA: &str = "tegra";

/// Returns true under WSL: the node of WSL is there, and the driver's usual node is not.
pub(super) fn is_wsl(files: &HostFiles) -> bool {
    files.has_file(DXG, None) && !files.has_file("/dev/nvidiactl", None)
}

/// Returns true if the machine's files are those of a Tegra board. NVIDIA's device plugin checks
/// the same two files.
pub(super) fn is_tegra(files: &HostFiles) -> bool {
    let family = files.read_trimmed("/sys/devices/soc0/family", None);
    let is_tegra = |family: String| family.to_ascii_lowercase().starts_with("tegra");
    files.has_file("/etc/nv_tegra_release", None) || family.is_some_and(is_tegra)
}

/// Returns true if NVML's product name is that of a Tegra board's card.
pub(super) fn is_integrated(model: &str) -> bool {
    model.contains("(nvgpu)") || model.contains("NVIDIA Thor")
}

/// Merges all cards under WSL into the one device that a container can be given; `None` without
/// cards.
pub(super) fn together(cards: Vec<Device>) -> Option<Device> {
    let mut memory = cards.iter().map(Device::memory_bytes);
    let memory = memory.try_fold(0_u64, |sum, card| sum.checked_add(card?));
    let failures: Vec<_> = cards
        .iter()
        .flat_map(|card| card.failures.clone())
        .collect();
    let mut attributes = cards.into_iter().next()?.attributes;
    // These two are facts about one card only.
    attributes.remove(&names::DISPLAY);
    attributes.remove(&names::COHERENT);
    attributes.insert(names::COMBINED, true.into());
    Some(Device {
        attributes,
        capacity: memory
            .map(|bytes| (names::MEMORY, bytes))
            .into_iter()
            .collect(),
        nodes: vec![DeviceNode {
            path: DXG.to_owned(),
            role: NodeRole::Own,
        }],
        failures,
        ..Device::bare_card("nvidia", ALL)
    })
}

/// Merges the samples of cards that are one device: memory, power and ECC errors are added up, of
/// temperature and utilization the highest counts. The result has no counters since the last reset:
/// a sum falls when one card was reset, and also when one card was not read.
pub(super) fn merge_samples(samples: Vec<Sample>) -> Vec<Sample> {
    let mut sums: BTreeMap<DeviceId, Sample> = BTreeMap::new();
    for mut sample in samples {
        sample.since_reset = SinceReset::default();
        match sums.entry(sample.device.clone()) {
            Entry::Vacant(place) => {
                place.insert(sample);
            }
            Entry::Occupied(mut sum) => {
                add_telemetry(&mut sum.get_mut().telemetry, sample.telemetry)
            }
        }
    }
    sums.into_values().collect()
}

/// Adds the telemetry of one card to a sum. A value that one of the cards lacks is absent from the
/// sum, except temperature and utilization.
fn add_telemetry(sum: &mut Telemetry, more: Telemetry) {
    let both = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    let watts = |a: Option<u32>, b: Option<u32>| Some(a?.saturating_add(b?));
    sum.temperature_celsius = sum.temperature_celsius.max(more.temperature_celsius);
    sum.utilization_percent = sum.utilization_percent.max(more.utilization_percent);
    sum.power_milliwatts = watts(sum.power_milliwatts, more.power_milliwatts);
    sum.memory_used_bytes = both(sum.memory_used_bytes, more.memory_used_bytes);
    sum.ecc = sum.ecc.zip(more.ecc).map(|(a, b)| Ecc {
        corrected: a.corrected.saturating_add(b.corrected),
        uncorrected: a.uncorrected.saturating_add(b.uncorrected),
    });
    let processes = sum.processes.take().into_iter().chain(more.processes);
    sum.processes = processes.reduce(|mut all, more| {
        all.extend(more);
        all.sort();
        all.dedup();
        all
    });
}

/// Returns the card of a Tegra board. It has no device nodes: NVIDIA's container runtime knows
/// them.
pub(super) fn tegra_card(files: &HostFiles, model: Option<&str>) -> Device {
    let machine = files.read_trimmed("/sys/devices/soc0/machine", None);
    let machine = machine.filter(|name| !name.is_empty());
    let model = model.map(str::to_owned).or(machine);
    Device {
        index: Some(Index::of_card(0)),
        ..Device::card_of("nvidia", TEGRA, model.as_deref().unwrap_or("NVIDIA Tegra"))
            .with_attribute(names::INTEGRATED, true)
    }
}

/// Returns the driver of a Tegra board, which is a part of the system.
pub(super) fn tegra_driver(files: &HostFiles) -> Driver {
    let release = files.read_trimmed("/etc/nv_tegra_release", None);
    let version = release.as_deref().and_then(release_number);
    Driver {
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        cuda: None,
        library: None,
        instance: None,
    }
}

/// Parses the release, `36.4.3` of `# R36 (release), REVISION: 4.3, …`.
fn release_number(text: &str) -> Option<String> {
    let (major, rest) = text.strip_prefix("# R")?.split_once(' ')?;
    let (_, minor) = rest.split_once("REVISION: ")?;
    let minor = minor.split(',').next()?.trim();
    Some(format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, HostFiles) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(file, text).unwrap();
        }
        let files = HostFiles::new(root.path(), Arc::default());
        (root, files)
    }

    #[rstest]
    #[case(&[], false)]
    #[case(&[("etc/nv_tegra_release", "")], true)]
    #[case(&[("sys/devices/soc0/family", "Tegra\n")], true)]
    #[case(&[("sys/devices/soc0/family", "tegra234")], true)]
    #[case(&[("sys/devices/soc0/family", "i.MX")], false)]
    fn knows_a_tegra_board_by_its_files(#[case] files: &[(&str, &str)], #[case] is: bool) {
        let (_root, files) = host(files);
        assert_eq!(is_tegra(&files), is);
    }

    #[test]
    fn a_tegra_board_is_one_device_named_after_the_machine() {
        let release = "# R36 (release), REVISION: 4.3, GCID: 1, BOARD: generic\n";
        let (_root, files) = host(&[
            ("etc/nv_tegra_release", release),
            ("sys/devices/soc0/machine", "Jetson AGX Orin\n"),
        ]);
        let device = tegra_card(&files, None);
        assert_eq!(device.id.as_str(), "tegra");
        assert_eq!(device.index, Some(Index::of_card(0)));
        assert_eq!(device.product_name(), Some("Jetson AGX Orin"));
        assert!(device.nodes.is_empty());
        assert_eq!(tegra_driver(&files).version, "36.4.3");
        let (_root, nothing) = host(&[]);
        assert_eq!(
            tegra_card(&nothing, None).product_name(),
            Some("NVIDIA Tegra")
        );
        assert_eq!(tegra_driver(&nothing).version, "unknown");
    }

    #[test]
    fn the_samples_of_cards_that_are_one_device_are_one() {
        let sample = |device: &str, celsius, milliwatts, bytes| Sample {
            device: device.into(),
            telemetry: Telemetry {
                temperature_celsius: Some(celsius),
                power_milliwatts: milliwatts,
                memory_used_bytes: Some(bytes),
                ecc: Some(Ecc {
                    corrected: 1,
                    uncorrected: 2,
                }),
                ..Telemetry::default()
            },
            since_reset: SinceReset {
                ecc_errors: Some(3),
                ..SinceReset::default()
            },
        };
        let cards = vec![sample("all", 40, Some(7), 1), sample("all", 60, None, 2)];
        let sums = merge_samples(cards);
        assert_eq!(sums.len(), 1, "{sums:?}");
        assert_eq!(sums[0].device.as_str(), "all");
        let telemetry = &sums[0].telemetry;
        assert_eq!(telemetry.temperature_celsius, Some(60));
        assert_eq!(
            telemetry.power_milliwatts, None,
            "a part of it is not known"
        );
        assert_eq!(telemetry.memory_used_bytes, Some(3));
        let ecc = telemetry.ecc.unwrap();
        assert_eq!((ecc.corrected, ecc.uncorrected), (2, 4));
    }

    #[test]
    fn under_wsl_all_cards_are_one_device() {
        let card = |n: u64| {
            Device::card_of("nvidia", format!("GPU-{n}"), "NVIDIA RTX 4090").with_memory(n << 30)
        };
        let all = together(vec![card(8), card(16)]).unwrap();
        assert_eq!(all.id.as_str(), "all");
        assert_eq!(all.index, None);
        assert_eq!(all.memory_bytes(), Some(24 << 30));
        assert_eq!(all.product_name(), Some("NVIDIA RTX 4090"));
        assert_eq!(all.nodes[0].path, DXG);
        assert_eq!(together(Vec::new()), None);
        let (_root, wsl) = host(&[("dev/dxg", "")]);
        let (_other, both) = host(&[("dev/dxg", ""), ("dev/nvidiactl", "")]);
        assert!(is_wsl(&wsl) && !is_wsl(&both));
    }
}
