//! Machines whose driver is not installed in the usual way: WSL and Tegra boards.

use config::ListStrategy;
use model::{FileKind, NodeStat, Platform, names};
use rstest::rstest;

use super::{layouts::file, *};
use grant::cdi_names;

use crate::sample::{listed_pool, tegra_device, wsl};

const STORE: &str = "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0a1b2c3d4e5f6071";
const LIB: &str = "/usr/lib/aarch64-linux-gnu";

fn hooks() -> Vec<String> {
    vec!["/usr/bin/nvidia-cdi-hook".to_owned()]
}

/// Makes the driver files that the probe reports under WSL.
fn windows() -> DriverFiles {
    let library = |name: &str| file(&format!("{STORE}/{name}"), FileKind::Library, &[]);
    let mut smi = file(&format!("{STORE}/nvidia-smi"), FileKind::Binary, &[]);
    smi.container_path = Some("/usr/bin/nvidia-smi".to_owned());
    DriverFiles {
        platform: Platform::Wsl,
        files: vec![
            library("libcuda.so.1.1"),
            library("libcuda_loader.so"),
            library("libnvidia-ml.so.1"),
            file(&format!("{STORE}/nvcubins.bin"), FileKind::Config, &[]),
            smi,
            file("/usr/lib/wsl/lib/libdxcore.so", FileKind::Library, &[]),
        ],
        hooks: hooks(),
        ..DriverFiles::default()
    }
}

/// Makes the driver files that the probe reports on a Jetson.
fn jetson() -> DriverFiles {
    let stat = |minor, mode, gid| NodeStat {
        major: 239,
        minor,
        mode,
        uid: 0,
        gid,
    };
    let cuda = [
        (&*format!("{LIB}/libcuda.so"), "nvidia/libcuda.so"),
        (&*format!("{LIB}/nvidia/libcuda.so"), "libcuda.so.1.1"),
        (&*format!("{LIB}/nvidia/libcuda.so.1"), "libcuda.so.1.1"),
    ];
    let board = ["/dev/nvgpu/igpu0/as", "/dev/nvhost-gpu", "/dev/nvmap"];
    DriverFiles {
        platform: Platform::Tegra,
        files: vec![
            file("/etc/nv_tegra_release", FileKind::Config, &[]),
            file("/lib/firmware/ga10b", FileKind::Config, &[]),
            file(
                &format!("{LIB}/nvidia/libcuda.so.1.1"),
                FileKind::Library,
                &cuda,
            ),
            file(
                &format!("{LIB}/nvidia/libnvrm_gpu.so"),
                FileKind::Library,
                &[],
            ),
        ],
        nodes: [
            ("/dev/nvhost-gpu".to_owned(), stat(1, 0o660, 44)),
            ("/dev/nvmap".to_owned(), stat(0, 0o666, 44)),
        ]
        .into(),
        board_nodes: board.map(str::to_owned).into(),
        hooks: hooks(),
        ..DriverFiles::default()
    }
}

fn gpus(device: Card, files: DriverFiles, wish: &SpecContents) -> (CdiSpec, Vec<String>) {
    let made = made(&machine(vec![device], files), wish, &cdi());
    let spec = spec(&made, GPU).clone();
    let value = serde_json::to_value(&spec).unwrap();
    assert_eq!(check_spec(&value), []);
    (spec, made.notes)
}

fn both() -> SpecContents {
    SpecContents {
        ids: vec![IdStrategy::Uuid, IdStrategy::Index],
        ..SpecContents::default()
    }
}

#[rstest]
#[case::wsl("wsl", wsl(), windows())]
#[case::tegra("tegra", tegra_device(), jetson())]
fn the_spec_is_this(#[case] name: &str, #[case] device: Card, #[case] files: DriverFiles) {
    let (spec, notes) = gpus(device, files, &both());
    assert_eq!(notes, [""; 0]);
    insta::assert_snapshot!(name, spec.to_text());
}

#[rstest]
#[case::wsl(wsl(), windows(), "all", "all")]
#[case::tegra(tegra_device(), jetson(), "tegra", "0")]
fn the_name_that_a_container_is_given_is_in_the_spec(
    #[case] device: Card,
    #[case] files: DriverFiles,
    #[case] by_id: &str,
    #[case] by_index: &str,
) {
    for (ids, name) in [(IdStrategy::Uuid, by_id), (IdStrategy::Index, by_index)] {
        let mut pool = listed_pool(&[ListStrategy::CdiCri]);
        pool.handover.ids = ids;
        let wish = SpecContents::of_handovers([&pool.handover]).unwrap();
        let (spec, _) = gpus(device.clone(), files.clone(), &wish);
        let offer = offer_of_devices("nvidia.com/gpu", pool, vec![device.clone()]);
        let given = cdi_names(&offer, &device);
        assert_eq!(given, [format!("{}={name}", spec.kind)]);
        assert!(
            spec.qualified_names().any(|name| name == given[0]),
            "{given:?}"
        );
    }
}

#[test]
fn without_a_program_for_hooks_only_the_loader_is_not_told() {
    for (device, files, smi) in [(wsl(), windows(), true), (tegra_device(), jetson(), false)] {
        let files = DriverFiles {
            hooks: Vec::new(),
            ..files
        };
        let (spec, notes) = gpus(device, files, &SpecContents::default());
        assert!(spec.container_edits.hooks.is_empty());
        let there = inside(&spec.container_edits);
        assert_eq!(there.contains(&"/usr/bin/nvidia-smi"), smi);
        let cuda = there.iter().filter(|path| path.ends_with("/libcuda.so.1"));
        assert_eq!(cuda.count(), 1, "{there:?}");
        let [note] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(note.contains("update-ldcache"), "{note}");
        assert!(!note.contains("enable-cuda-compat"), "{note}");
    }
}

/// Returns the arguments of the hook that lets a newer CUDA replace the driver's.
fn compat(spec: &CdiSpec) -> Option<Vec<&str>> {
    let mut hooks = spec.container_edits.hooks.iter();
    let hook = hooks.find(|hook| hook.args[1] == "enable-cuda-compat")?;
    Some(hook.args[2..].iter().map(String::as_str).collect())
}

#[rstest]
#[case::no_nvml("NVIDIA Tegra", None, None)]
#[case::orin(
    "Orin (nvgpu)",
    Some("12.6"),
    Some(&["--host-cuda-version=12.6", "--cuda-compat-container-root=/usr/local/cuda/compat_orin"][..])
)]
#[case::thor("NVIDIA Thor", Some("13.0"), Some(&["--host-cuda-version=13.0"][..]))]
fn a_board_with_nvml_lets_a_newer_cuda_take_its_place(
    #[case] model: &str,
    #[case] cuda: Option<&str>,
    #[case] words: Option<&[&str]>,
) {
    let device = tegra_device().with_attribute(names::PRODUCT, model);
    let mut snapshot = machine(vec![device], jetson());
    for driver in snapshot.backends.iter_mut().flat_map(|b| &mut b.driver) {
        driver.cuda = cuda.map(str::to_owned);
    }
    let made = made(&snapshot, &SpecContents::default(), &cdi());
    assert_eq!(compat(spec(&made, GPU)).as_deref(), words);
}

#[test]
fn a_board_without_nodes_has_no_spec_and_a_reason() {
    let files = DriverFiles {
        board_nodes: Vec::new(),
        ..jetson()
    };
    let made = made(
        &machine(vec![tegra_device()], files),
        &SpecContents::default(),
        &cdi(),
    );
    assert_eq!(made.specs, []);
    let said = made.notes.iter().any(|note| note.contains("tegra"));
    assert!(said, "{:?}", made.notes);
}

#[test]
fn who_looks_after_a_board_has_its_nodes() {
    let made = written(management(
        &machine(vec![tegra_device()], jetson()),
        &SpecContents::default(),
        &cdi(),
    ));
    let edits = &device(&made.specs[0], ALL).container_edits;
    assert_eq!(
        paths(edits),
        ["/dev/nvhost-gpu", "/dev/nvmap", "/dev/nvgpu/igpu0/as"]
    );
}
