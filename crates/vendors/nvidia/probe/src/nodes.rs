//! Device nodes that a container needs, if the host has them.

use std::collections::{BTreeMap, BTreeSet};

use model::{CallFailure, CardRef, DeviceNode, NodeRole};
use probe::sysfs::HostFiles;

use super::platform::{DXG, is_wsl};

/// Node without which no card can be used. If it is not visible, no node of the host is visible to
/// the agent.
const DRIVER: &str = "/dev/nvidiactl";

/// Nodes of which every driver has one; the second is that of a Tegra board.
pub(super) const ANY_DRIVER: [&str; 2] = [DRIVER, "/dev/nvmap"];

/// Nodes that all cards share. A container needs them beside the card's own node.
const CONTROL: [&str; 4] = [
    DRIVER,
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
];

/// Finds device nodes. A missing node is left out and logged once.
#[derive(Debug)]
pub(super) struct NodeFinder {
    files: HostFiles,
    missing: BTreeSet<String>,
}

/// Minor numbers of MIG's capability nodes, by the name that the driver gives each capability.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MigMinors(BTreeMap<String, u32>);

/// MIG device as the driver's files name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MigInstance {
    /// Minor number of the card's device node. It need not be NVML's index.
    pub(super) card: u32,
    /// Id of the GPU instance.
    pub(super) gpu: u32,
    /// Id of the compute instance.
    pub(super) compute: u32,
}

// === impl NodeFinder ===

impl NodeFinder {
    pub(super) fn new(files: HostFiles) -> Self {
        Self {
            files,
            missing: BTreeSet::new(),
        }
    }

    /// Returns the nodes of a card with this minor number.
    pub(super) fn find_card_nodes(&mut self, at: CardRef, minor: Option<u32>) -> Vec<DeviceNode> {
        // Under WSL there is only this node, and NVML has no minor numbers (NVIDIA/gpu-operator
        // issue 318). Nothing is missing.
        if is_wsl(&self.files) {
            let node = self.find_node(DXG.to_owned(), NodeRole::Own, None);
            return node.into_iter().collect();
        }
        // A minor number and NVML's index may differ, for example after a card was lost.
        let mut nodes: Vec<DeviceNode> = minor
            .and_then(|minor| self.find_node(card_node_path(minor), NodeRole::Own, Some(at)))
            .into_iter()
            .collect();
        for path in CONTROL {
            nodes.extend(self.find_node(path.to_owned(), NodeRole::Control, None));
        }
        nodes
    }

    /// Returns the capability nodes of a MIG device: one for its GPU instance, one for its compute
    /// instance.
    pub(super) fn capabilities(&mut self, at: CardRef, instance: MigInstance) -> Vec<DeviceNode> {
        // Read each time: the file is new after the driver was loaded again, and its numbers may
        // differ.
        let minors = MigMinors::read_mig_minors(&self.files);
        let names = [instance.gpu_access(), instance.compute_access()];
        let mut nodes = Vec::new();
        for name in names {
            match minors.0.get(&name) {
                Some(minor) => {
                    let path = format!("/dev/nvidia-caps/nvidia-cap{minor}");
                    nodes.extend(self.find_node(path, NodeRole::Capability, Some(at)));
                }
                None => self.miss(format!("capability {name} in {}", MigMinors::FILE)),
            }
        }
        nodes
    }

    fn find_node(
        &mut self,
        path: String,
        role: NodeRole,
        card: Option<CardRef>,
    ) -> Option<DeviceNode> {
        if self.files.has_file(&path, card) {
            self.missing.remove(&path);
            return Some(DeviceNode { path, role });
        }
        self.miss(path);
        None
    }

    /// Logs a missing node, once until it is there again.
    fn miss(&mut self, what: String) {
        if !self.missing.contains(&what) {
            let root = self.files.host_root();
            tracing::warn!(root = %root.display(), "not visible, so it is not handed out: {what}");
            self.missing.insert(what);
        }
    }
}

// === impl MigMinors ===

impl MigMinors {
    const FILE: &str = "/proc/driver/nvidia-caps/mig-minors";

    fn read_mig_minors(files: &HostFiles) -> Self {
        let text = files.read_trimmed(Self::FILE, None);
        text.map_or_else(Self::default, Self::parse_mig_minors)
    }

    /// Parses lines of a name and a number. Other lines are skipped.
    pub(super) fn parse_mig_minors(text: impl AsRef<str>) -> Self {
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let (path, minor) = (words.next()?, words.next()?);
            (words.next().is_none()).then_some((path.to_owned(), minor.parse().ok()?))
        };
        Self(text.as_ref().lines().filter_map(line).collect())
    }
}

// === impl MigInstance ===

impl MigInstance {
    fn gpu_access(self) -> String {
        format!("gpu{}/gi{}/access", self.card, self.gpu)
    }

    fn compute_access(self) -> String {
        let Self { card, gpu, compute } = self;
        format!("gpu{card}/gi{gpu}/ci{compute}/access")
    }
}

/// Returns the failure of a card that has no node of its own although the host's nodes are visible.
pub(super) fn unusable(minor: Option<u32>, nodes: &[DeviceNode]) -> Option<CallFailure> {
    let has_own = nodes.iter().any(|node| node.role == NodeRole::Own);
    let visible = nodes.iter().any(|node| node.path == DRIVER);
    (visible && !has_own).then(|| CallFailure {
        call: match minor {
            Some(minor) => format!("open {}", card_node_path(minor)),
            None => "nvmlDeviceGetMinorNumber".to_owned(),
        },
        code: "NO_DEVICE_NODE".to_owned(),
        fatal: true,
    })
}

/// Returns the path of the card's node with this minor number.
fn card_node_path(minor: u32) -> String {
    format!("/dev/nvidia{minor}")
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::make_tree, *};
    use proptest::prelude::*;
    use rstest::rstest;
    use std::path::Path;

    const AT: CardRef = CardRef::Index(0);

    fn nodes(root: &Path) -> NodeFinder {
        NodeFinder::new(HostFiles::new(root, std::sync::Arc::default()))
    }

    fn paths(nodes: &[DeviceNode]) -> Vec<&str> {
        nodes.iter().map(|node| node.path.as_str()).collect()
    }

    #[test]
    fn lists_what_the_host_has_under_host_paths() {
        let root = make_tree(&["dev/nvidia3", "dev/nvidiactl", "dev/nvidia-uvm"]);
        let found = nodes(root.path()).find_card_nodes(AT, Some(3));
        assert_eq!(
            paths(&found),
            ["/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm"]
        );
        assert_eq!(found[0].role, NodeRole::Own);
        assert_eq!(found[1].role, NodeRole::Control);
    }

    #[test]
    fn a_node_that_is_not_there_is_left_out() {
        let root = make_tree(&["dev/nvidiactl"]);
        assert_eq!(
            paths(&nodes(root.path()).find_card_nodes(AT, Some(0))),
            ["/dev/nvidiactl"]
        );
        assert_eq!(
            paths(&nodes(root.path()).find_card_nodes(AT, None)),
            ["/dev/nvidiactl"]
        );
    }

    #[test]
    fn under_wsl_there_is_one_node() {
        let root = make_tree(&["dev/dxg"]);
        for minor in [None, Some(0)] {
            let mut nodes = nodes(root.path());
            assert_eq!(paths(&nodes.find_card_nodes(AT, minor)), ["/dev/dxg"]);
            assert!(nodes.missing.is_empty(), "{:?}", nodes.missing);
        }
    }

    #[rstest]
    #[case(&["dev/nvidia3", "dev/nvidiactl"], Some(3), None)]
    #[case(&["dev/nvidia3", "dev/nvidiactl"], Some(4), Some("open /dev/nvidia4"))]
    #[case(&["dev/nvidia3", "dev/nvidiactl"], None, Some("nvmlDeviceGetMinorNumber"))]
    #[case::folder(&["dev/nvidia4/x", "dev/nvidiactl"], Some(4), Some("open /dev/nvidia4"))]
    #[case(&["dev/nvidia-uvm"], Some(4), None)]
    #[case(&["dev/dxg"], None, None)]
    fn a_card_without_its_own_node_is_unusable_where_nodes_are_visible(
        #[case] there: &[&str],
        #[case] minor: Option<u32>,
        #[case] call: Option<&str>,
    ) {
        let root = make_tree(there);
        let found = nodes(root.path()).find_card_nodes(AT, minor);
        let failure = unusable(minor, &found);
        assert_eq!(failure.as_ref().map(|f| f.call.as_str()), call);
        assert!(failure.is_none_or(|failure| failure.fatal));
    }

    #[test]
    fn a_mig_device_has_a_node_for_each_instance() {
        let root = make_tree(&[
            "dev/nvidia-caps/nvidia-cap21",
            "dev/nvidia-caps/nvidia-cap22",
        ]);
        let file = root.path().join(&MigMinors::FILE[1..]);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        let text = "config 1\nmonitor 2\ngpu0/gi1/access 21\ngpu0/gi1/ci0/access 22\nrubbish\n";
        fs_err::write(file, text).unwrap();
        let mut nodes = nodes(root.path());
        let there = MigInstance {
            card: 0,
            gpu: 1,
            compute: 0,
        };
        let expected = [
            "/dev/nvidia-caps/nvidia-cap21",
            "/dev/nvidia-caps/nvidia-cap22",
        ];
        assert_eq!(paths(&nodes.capabilities(AT, there)), expected);
        let elsewhere = MigInstance {
            card: 0,
            gpu: 2,
            compute: 0,
        };
        assert_eq!(nodes.capabilities(AT, elsewhere), []);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(?s).*") {
            let _ = MigMinors::parse_mig_minors(text);
        }

        #[test]
        fn reads_every_good_line_among_bad_ones(minor: u32, rubbish in "[^\n]*") {
            let text = format!("{rubbish}\ngpu0/gi1/access {minor}\n{rubbish} {rubbish}\n");
            prop_assume!(!rubbish.contains("gpu0/gi1/access"));
            let minors = MigMinors::parse_mig_minors(text);
            prop_assert_eq!(minors.0.get("gpu0/gi1/access"), Some(&minor));
        }
    }
}
