//! Contents of the CDI specs of a node, as all pools together need them: one spec serves all pools.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use config::{Handover, IdStrategy};
use model::Snapshot;
use rules::SpecScope;

use super::held::handovers;
use crate::companions::IMEX_CHANNEL;

/// Contents of the specs to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpecContents {
    /// Strategies by which devices are named.
    pub(super) ids: Vec<IdStrategy>,
    /// Folder on the host that has the device nodes.
    pub(super) dev_root: PathBuf,
    /// Includes GPUDirect Storage.
    pub(super) gds: bool,
    /// Includes GDRCopy.
    pub(super) gdrcopy: bool,
    /// Includes RDMA devices.
    pub(super) mofed: bool,
    /// IMEX channels.
    pub(super) imex: BTreeSet<u32>,
    /// Conflicts between pools, each as a sentence for the log.
    pub(super) conflicts: Vec<String>,
}

// === impl SpecContents ===

impl SpecContents {
    /// Returns the contents for this scope; `None` if no pool may use CDI.
    pub(super) fn in_scope(scope: &SpecScope<'_>, snapshot: &Snapshot) -> Option<Self> {
        match *scope {
            SpecScope::Asked { now, lately, held } => {
                // The device root of the present pools holds for the others too: only one can be in
                // a spec, and the device nodes are where the present config says.
                let root = now.iter().find(|handover| handover.may_use_cdi());
                let root = root.or(now.first()).cloned().unwrap_or_default();
                let held = handovers(held);
                let mut others: Vec<Handover> = lately.iter().chain(&held).cloned().collect();
                for handover in &mut others {
                    handover.nvidia.dev_root.clone_from(&root.nvidia.dev_root);
                }
                Self::of_handovers(now.iter().chain(&others))
            }
            SpecScope::Everything(handover) | SpecScope::Management(handover) => {
                Some(Self::include_everything(handover, snapshot))
            }
        }
    }

    /// Returns the contents that include everything on the node.
    fn include_everything(handover: &Handover, snapshot: &Snapshot) -> Self {
        let extras = snapshot.backends.iter().map(|backend| &backend.extras);
        let channels = extras.flat_map(|extras| extras.companions.list_numbers(IMEX_CHANNEL));
        Self {
            ids: vec![IdStrategy::Uuid, IdStrategy::Index],
            dev_root: handover.nvidia.dev_root.clone(),
            gds: true,
            gdrcopy: true,
            mofed: true,
            imex: channels.collect(),
            conflicts: Vec::new(),
        }
    }

    /// Returns the contents for these pools; `None` if none of them may use CDI.
    pub(super) fn of_handovers<'a>(
        handovers: impl IntoIterator<Item = &'a Handover>,
    ) -> Option<Self> {
        let mut handovers = handovers.into_iter().filter(|h| h.may_use_cdi());
        let first = handovers.next()?;
        let mut wish = Self {
            dev_root: first.nvidia.dev_root.clone(),
            ..Self::default()
        };
        wish.add_handover(first);
        for handover in handovers {
            wish.add_handover(handover);
        }
        Some(wish)
    }

    /// Adds the needs of one pool.
    fn add_handover(&mut self, handover: &Handover) {
        if !self.ids.contains(&handover.ids) {
            self.ids.push(handover.ids);
        }
        self.gds |= handover.nvidia.gds;
        self.gdrcopy |= handover.nvidia.gdrcopy;
        self.mofed |= handover.nvidia.mofed;
        self.imex.extend(&handover.nvidia.imex);
        if handover.nvidia.dev_root != self.dev_root {
            let (first, other) = (self.dev_root.display(), handover.nvidia.dev_root.display());
            let text = format!(
                "pools with CDI have different device roots, {first} and {other}: the specs have \
                 {first}; give these pools one `handover.nvidia.devRoot`"
            );
            if !self.conflicts.contains(&text) {
                self.conflicts.push(text);
            }
        }
    }
}

impl Default for SpecContents {
    /// Returns contents without companions, with device nodes in the host's own `/dev`.
    fn default() -> Self {
        Self {
            ids: Vec::new(),
            dev_root: Path::new("/").to_owned(),
            gds: false,
            gdrcopy: false,
            mofed: false,
            imex: BTreeSet::new(),
            conflicts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use config::ListStrategy;

    use super::*;

    fn handover(lists: &[ListStrategy], change: impl FnOnce(&mut Handover)) -> Handover {
        let mut handover = Handover {
            lists: lists.to_vec(),
            ..Handover::default()
        };
        change(&mut handover);
        handover
    }

    #[test]
    fn without_a_pool_that_uses_cdi_there_is_nothing_to_wish_for() {
        let others = [
            handover(&[ListStrategy::Envvar], |h| h.nvidia.gds = true),
            handover(&[], |_| ()),
        ];
        assert_eq!(SpecContents::of_handovers(&others), None);
    }

    #[test]
    fn pools_are_served_by_one_spec() {
        let pools = [
            handover(&[ListStrategy::Envvar], |h| h.nvidia.mofed = true),
            handover(&[ListStrategy::CdiCri], |h| h.nvidia.imex = vec![1]),
            handover(&[ListStrategy::Auto], |h| {
                (h.ids, h.nvidia.gds, h.nvidia.imex) = (IdStrategy::Index, true, vec![0, 1]);
            }),
        ];
        let wish = SpecContents::of_handovers(&pools).unwrap();
        assert_eq!(wish.ids, [IdStrategy::Uuid, IdStrategy::Index]);
        assert_eq!((wish.gds, wish.gdrcopy, wish.mofed), (true, false, false));
        assert_eq!(wish.imex, BTreeSet::from([0, 1]));
        assert_eq!(wish.conflicts, [""; 0]);
    }

    #[test]
    fn pools_that_do_not_agree_on_the_device_root_are_told() {
        let pools = [
            handover(&[ListStrategy::CdiCri], |_| ()),
            handover(&[ListStrategy::CdiCri], |h| {
                h.nvidia.dev_root = "/run/driver".into()
            }),
        ];
        let wish = SpecContents::of_handovers(&pools).unwrap();
        assert_eq!(wish.dev_root, Path::new("/"));
        let [conflict] = &wish.conflicts[..] else {
            panic!("{:?}", wish.conflicts);
        };
        assert!(conflict.contains("/run/driver"), "{conflict}");
    }

    /// Returns the contents for present pools, recent pools, and containers that hold these names.
    fn asked(now: &[Handover], lately: &[Handover], held: &[&str]) -> SpecContents {
        let kind = "k8s.device-plugin.nvidia.com";
        let held = held.iter().map(|name| format!("{kind}/{name}")).collect();
        let scope = SpecScope::Asked {
            now,
            lately,
            held: &held,
        };
        let nothing = Snapshot::empty_at(jiff::Timestamp::UNIX_EPOCH);
        SpecContents::in_scope(&scope, &nothing).unwrap()
    }

    #[test]
    fn every_class_is_kept_for_those_who_hold_names_of_it() {
        let now = [handover(&[ListStrategy::CdiCri], |_| ())];
        let held = ["gpu=GPU-a", "gds=all", "imex-channel=3"];
        let wish = asked(&now, &[], &held);
        assert_eq!((wish.gds, wish.gdrcopy, wish.mofed), (true, false, false));
        assert_eq!(wish.imex, [3].into());
    }

    #[test]
    fn where_nodes_are_is_for_those_to_say_who_ask_now() {
        let at = |list, root: &str| handover(&[list], |h| h.nvidia.dev_root = root.into());
        let (old, new) = (
            at(ListStrategy::CdiCri, "/old"),
            at(ListStrategy::Envvar, "/new"),
        );
        let newer = at(ListStrategy::CdiCri, "/newer");
        for (now, root) in [
            (vec![old.clone()], "/old"),
            (vec![new.clone()], "/new"),
            (vec![new, newer], "/newer"),
        ] {
            let wish = asked(&now, std::slice::from_ref(&old), &["gpu=GPU-a"]);
            assert_eq!(wish.dev_root, Path::new(root));
            assert_eq!(wish.conflicts, [""; 0]);
        }
    }
}
