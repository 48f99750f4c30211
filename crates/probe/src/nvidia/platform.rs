//! Machines on which cards cannot be told apart: under WSL a container gets all of them or none,
//! and on a Tegra board there is one, which need not have NVML.

use model::{Device, DeviceNode, Driver, NodeRole};

use super::files::Files;

/// The one node there is under WSL.
pub(super) const DXG: &str = "/dev/dxg";

/// The id of all cards together under WSL.
const ALL: &str = "all";
/// The id of a Tegra board's card.
const TEGRA: &str = "tegra";

/// How the cards are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// As the machine is.
    #[default]
    Auto,
    /// Through NVML, whatever the machine looks like.
    Nvml,
    /// As a Tegra board, whatever the machine looks like.
    Tegra,
}

/// Whether this is WSL: its node is there, and the driver's usual one is not.
pub(super) fn is_wsl(files: &Files) -> bool {
    files.has(DXG, None) && !files.has("/dev/nvidiactl", None)
}

/// Whether the machine's files say that it is a Tegra board.
pub(super) fn is_tegra(files: &Files) -> bool {
    let family = files.text("/sys/devices/soc0/family", None);
    let is_tegra = |family: String| family.to_ascii_lowercase().starts_with("tegra");
    files.has("/etc/nv_tegra_release", None) || family.is_some_and(is_tegra)
}

/// Whether NVML's name of a card says that it is a Tegra board's.
pub(super) fn is_integrated(model: &str) -> bool {
    model.contains("(nvgpu)") || model.contains("NVIDIA Thor")
}

/// All cards under WSL as the one device that a container can be given.
pub(super) fn together(cards: Vec<Device>) -> Option<Device> {
    let mut memory = cards.iter().map(|card| card.memory_bytes);
    let memory = memory.try_fold(0_u64, |sum, card| sum.checked_add(card?));
    let failures: Vec<_> = cards
        .iter()
        .flat_map(|card| card.failures.clone())
        .collect();
    let first = cards.into_iter().next()?;
    Some(Device {
        index: Some(ALL.to_owned()),
        memory_bytes: memory,
        compute_capability: first.compute_capability,
        nodes: vec![DeviceNode {
            path: DXG.to_owned(),
            role: NodeRole::Own,
        }],
        failures,
        ..Device::card_of("nvidia", ALL, &first.model)
    })
}

/// The card of a Tegra board. Its runtime knows the nodes.
pub(super) fn tegra(files: &Files, model: Option<&str>) -> Device {
    let machine = files.text("/sys/devices/soc0/machine", None);
    let machine = machine.filter(|name| !name.is_empty());
    let model = model.map(str::to_owned).or(machine);
    Device {
        index: Some("0".to_owned()),
        ..Device::card_of("nvidia", TEGRA, model.as_deref().unwrap_or("NVIDIA Tegra"))
    }
}

/// The driver of a Tegra board, which is a part of the system.
pub(super) fn tegra_driver(files: &Files) -> Driver {
    let release = files.text("/etc/nv_tegra_release", None);
    let version = release.as_deref().and_then(release_number);
    Driver {
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        cuda: None,
        library: None,
        instance: None,
    }
}

/// `36.4.3` of `# R36 (release), REVISION: 4.3, …`.
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

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Files) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs_err::create_dir_all(file.parent().unwrap()).unwrap();
            fs_err::write(file, text).unwrap();
        }
        let files = Files::new(root.path(), Arc::default());
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
        let device = tegra(&files, None);
        assert_eq!(device.id.as_str(), "tegra");
        assert_eq!(device.index.as_deref(), Some("0"));
        assert_eq!(device.model, "Jetson AGX Orin");
        assert!(device.nodes.is_empty());
        assert_eq!(tegra_driver(&files).version, "36.4.3");
        let (_root, nothing) = host(&[]);
        assert_eq!(tegra(&nothing, None).model, "NVIDIA Tegra");
        assert_eq!(tegra_driver(&nothing).version, "unknown");
    }

    #[test]
    fn under_wsl_all_cards_are_one_device() {
        let card = |n: u64| Device {
            memory_bytes: Some(n << 30),
            ..Device::card_of("nvidia", format!("GPU-{n}"), "NVIDIA RTX 4090")
        };
        let all = together(vec![card(8), card(16)]).unwrap();
        assert_eq!(all.id.as_str(), "all");
        assert_eq!(all.index.as_deref(), Some("all"));
        assert_eq!(all.memory_bytes, Some(24 << 30));
        assert_eq!(all.nodes[0].path, DXG);
        assert_eq!(together(Vec::new()), None);
        let (_root, wsl) = host(&[("dev/dxg", "")]);
        let (_other, both) = host(&[("dev/dxg", ""), ("dev/nvidiactl", "")]);
        assert!(is_wsl(&wsl) && !is_wsl(&both));
    }
}
