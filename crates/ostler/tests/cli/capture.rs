//! `ostler sim capture`: writes a profile of a node from which an equal node can be made.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use rstest::rstest;
use sim::{
    DeviceTarget, Effect, Node,
    state::{Gpu, NodeState},
};

use crate::text;

/// Nodes in a temporary folder.
struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let folder = sim::scratch().unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a node from a profile's name or file.
    fn create(&self, name: &str, profile: &str) -> Node {
        let dir = self.path(name);
        let made = ostler(&["sim", "create", dir.to_str().unwrap(), "--profile", profile]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        Node::open_node(&dir).unwrap()
    }

    /// Captures a node into a file. Returns the file and the text on standard error.
    fn capture(&self, node: &Node, more: &[&str]) -> (PathBuf, String) {
        let name = node.node_dir().file_name().unwrap().to_str().unwrap();
        let file = self.path(&format!("{name}.yaml"));
        let mut args = vec!["sim", "capture", "--output", file.to_str().unwrap()];
        args.extend(more);
        let output = on(node, &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (file, text(&output.stderr))
    }
}

fn ostler(args: &[&str]) -> Output {
    crate::ostler(args).output().unwrap()
}

/// Runs a command that reads a node.
fn on(node: &Node, args: &[&str]) -> Output {
    let (root, library) = (node.host_root(), node.driver_library());
    let mut args = args.to_vec();
    args.extend(["--host-root", root.to_str().unwrap()]);
    args.extend(["--nvml-library", library.to_str().unwrap()]);
    ostler(&args)
}

fn read(file: &Path) -> String {
    fs_err::read_to_string(file).unwrap()
}

/// Output of `ostler devices` for a node, with numbers in place of the UUIDs.
fn devices(node: &Node) -> String {
    let socket = node.node_dir().join("none.sock");
    let output = on(
        node,
        &["devices", "--control-socket", socket.to_str().unwrap()],
    );
    let mut shown = text(&output.stdout);
    let gpus = node.list_gpus().unwrap().into_iter().map(|gpu| gpu.uuid);
    let migs = node.list_migs().unwrap().into_iter().map(|mig| mig.uuid);
    for (number, uuid) in gpus.chain(migs).enumerate() {
        shown = shown.replace(&uuid, &format!("{number:040}"));
    }
    shown
}

/// Describes everything of a card except its UUIDs.
fn facts(state: &NodeState, gpu: &Gpu) -> String {
    let model = &state.models[&gpu.model];
    let mut links: Vec<_> = gpu
        .links
        .iter()
        .map(|l| (l.remote, l.switch, l.active))
        .collect();
    links.sort_unstable();
    let mut shapes = model.mig.clone();
    shapes.sort_by_key(|shape| shape.profile);
    // The class is read from the PCI bus, which WSL and Tegra do not have.
    let class = state.machine.platform.has_bus().then_some(&model.class);
    let migs = gpu
        .migs
        .iter()
        .map(|m| (&m.profile, m.gi, m.ci, m.slices, m.start));
    format!(
        "{} {} at {} below {} on {:?}/{:?}, node {}, {} MiB, capability {:?}, id {} {class:?}, ecc {}, \
         links {links:?}, MIG {} {:?}, shapes {shapes:?}",
        model.name,
        model.architecture,
        gpu.pci,
        gpu.under,
        gpu.numa,
        gpu.memory_numa,
        gpu.minor,
        model.memory_mib,
        model.compute_capability,
        model.device_id,
        model.ecc,
        gpu.mig_enabled,
        migs.collect::<Vec<_>>(),
    )
}

#[rstest]
#[case("a100-mig")]
#[case("a100-mig-odd")]
#[case("dgx-a100")]
#[case("dgx1-v100")]
#[case("gb200-nvl")]
#[case("hgx-b200")]
#[case("hgx-h100")]
#[case("hgx2-v100")]
#[case("l40s-pcie")]
#[case("mixed")]
#[case("t4")]
#[case("vgpu")]
#[case("wsl")]
fn a_node_made_from_a_capture_is_the_same_again(#[case] profile: &str) {
    let rig = Rig::new();
    let first = rig.create("first", profile);
    let (captured, _) = rig.capture(&first, &[]);
    let second = rig.create("second", captured.to_str().unwrap());
    let (again, _) = rig.capture(&second, &[]);
    assert_eq!(read(&captured), read(&again));

    let (one, two) = (first.node_state().unwrap(), second.node_state().unwrap());
    let all = |state: &NodeState| {
        state
            .gpus
            .iter()
            .map(|g| facts(state, g))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&one), all(&two));
    assert_eq!((&one.numa, &one.driver), (&two.numa, &two.driver));
    assert_eq!(one.machine.product, two.machine.product);
    assert_eq!(one.machine.platform, two.machine.platform);
    assert_eq!(one.machine.vgpu, two.machine.vgpu);
    assert_eq!(one.others, two.others);
    let clique = |state: &NodeState| state.machine.fabric.as_ref().map(|fabric| fabric.clique);
    assert_eq!(clique(&one), clique(&two));
    let shown = devices(&first);
    assert!(!shown.is_empty());
    assert_eq!(shown, devices(&second));
}

#[test]
fn a_captured_profile_reads_well() {
    let rig = Rig::new();
    let (file, said) = rig.capture(&rig.create("node", "t4"), &[]);
    assert_eq!(said, "");
    insta::assert_snapshot!("captured_t4", read(&file));
}

#[test]
fn ids_are_made_up_unless_they_are_to_be_kept() {
    let rig = Rig::new();
    let node = rig.create("node", "a100-mig");
    let state = node.node_state().unwrap();
    let (file, _) = rig.capture(&node, &[]);
    let shared = read(&file);
    for gpu in &state.gpus {
        assert!(!shared.contains(&gpu.uuid) && !shared.contains(&gpu.serial));
    }
    let (file, _) = rig.capture(&node, &["--keep-ids"]);
    let kept = rig
        .create("kept", file.to_str().unwrap())
        .node_state()
        .unwrap();
    let ids = |state: &NodeState| {
        let cards = state.gpus.iter();
        let cards = cards.map(|gpu| (gpu.uuid.clone(), gpu.serial.clone(), gpu.migs.clone()));
        cards.collect::<Vec<_>>()
    };
    assert_eq!(ids(&kept), ids(&state));
}

#[test]
fn the_fabric_of_another_is_not_told() {
    let rig = Rig::new();
    let node = rig.create("node", "gb200-nvl");
    let cluster = node.node_state().unwrap().machine.fabric.unwrap().cluster;
    let (file, _) = rig.capture(&node, &[]);
    assert!(!read(&file).contains(&cluster) && read(&file).contains("clique: 32766"));
    let (file, _) = rig.capture(&node, &["--keep-ids"]);
    assert!(read(&file).contains(&cluster));
}

#[test]
fn a_card_that_does_not_answer_is_left_out_and_named() {
    let rig = Rig::new();
    let node = rig.create("node", "hgx-h100");
    node.lose_cards(&DeviceTarget::Index(3)).unwrap();
    let (file, said) = rig.capture(&node, &[]);
    assert!(said.contains("card 3 is left out"), "{said}");
    assert!(said.contains("GPU_IS_LOST"), "{said}");
    let made = rig.create("made", file.to_str().unwrap());
    assert_eq!(made.list_gpus().unwrap().len(), 7);
}

#[test]
fn a_figure_that_cannot_be_read_is_named_and_the_card_stays() {
    let rig = Rig::new();
    let node = rig.create("node", "t4");
    let effect = Effect::Fail { code: 999 };
    let call = "nvmlDeviceGetTemperatureThreshold";
    node.set_fault(call, None, effect).unwrap();
    let (file, said) = rig.capture(&node, &[]);
    assert!(
        said.contains("the Shutdown temperature of Tesla T4 is left out"),
        "{said}"
    );
    let made = rig.create("made", file.to_str().unwrap());
    assert_eq!(made.list_gpus().unwrap().len(), 1);
}

#[test]
fn the_profile_is_printed_or_written_with_its_use() {
    let rig = Rig::new();
    let node = rig.create("node", "t4");
    let printed = on(&node, &["sim", "capture", "--name", "mine"]);
    assert!(text(&printed.stdout).contains("\nname: mine\n"));
    let file = rig.path("mine.yaml");
    let written = on(
        &node,
        &[
            "sim",
            "capture",
            "-o",
            file.to_str().unwrap(),
            "--name",
            "mine",
        ],
    );
    assert!(text(&written.stdout).contains("sim create DIR --profile"));
    assert_eq!(read(&file), text(&printed.stdout));
}

#[test]
fn without_a_driver_the_remedy_is_named() {
    let rig = Rig::new();
    let node = rig.create("node", "tegra");
    let output = on(&node, &["sim", "capture"]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("there is no driver to ask") && error.contains("--nvml-library"),
        "{error}"
    );
}

/// Examples of a page, in their order.
fn examples(page: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let page = read(&file);
    let parts = page.split("```yaml\n").skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_examples_of_the_page_make_nodes() {
    let rig = Rig::new();
    let examples = examples("simulator-profiles.md");
    assert!(examples.len() >= 2);
    for (number, example) in examples.iter().enumerate() {
        let file = rig.path(&format!("{number}.yaml"));
        fs_err::write(&file, example).unwrap();
        let node = rig.create(&number.to_string(), file.to_str().unwrap());
        assert!(!node.list_gpus().unwrap().is_empty());
    }
}
