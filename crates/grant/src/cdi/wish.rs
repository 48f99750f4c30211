//! What the pools of a node ask of CDI specs, all together: one spec serves them all.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use config::{Handover, IdStrategy, ListStrategy};

/// What specs are to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// By which ids devices are named.
    pub ids: Vec<IdStrategy>,
    /// The folder on the host under which device nodes are.
    pub dev_root: PathBuf,
    /// Whether GPUDirect Storage is handed over.
    pub gds: bool,
    /// Whether GDRCopy is.
    pub gdrcopy: bool,
    /// Whether RDMA devices are.
    pub mofed: bool,
    /// The IMEX channels.
    pub imex: BTreeSet<u32>,
    /// What the pools do not agree on, for a person.
    pub conflicts: Vec<String>,
}

// === impl Wish ===

impl Wish {
    /// What these pools ask for; nothing where none of them may use CDI.
    pub fn of<'a>(handovers: impl IntoIterator<Item = &'a Handover>) -> Option<Self> {
        let mut handovers = handovers.into_iter().filter(|h| may_use(h));
        let first = handovers.next()?;
        let mut wish = Self {
            dev_root: first.nvidia.dev_root.clone(),
            ..Self::default()
        };
        wish.add(first);
        for handover in handovers {
            wish.add(handover);
        }
        Some(wish)
    }

    fn add(&mut self, handover: &Handover) {
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

impl Default for Wish {
    /// Devices by their UUIDs, at home.
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

/// Whether a pool names devices by CDI, or would where that works.
fn may_use(handover: &Handover) -> bool {
    use ListStrategy::{Auto, CdiAnnotations, CdiCri};
    let mut lists = handover.lists.iter();
    lists.any(|list| matches!(list, Auto | CdiAnnotations | CdiCri))
}

#[cfg(test)]
mod tests {
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
        assert_eq!(Wish::of(&others), None);
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
        let wish = Wish::of(&pools).unwrap();
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
        let wish = Wish::of(&pools).unwrap();
        assert_eq!(wish.dev_root, Path::new("/"));
        let [conflict] = &wish.conflicts[..] else {
            panic!("{:?}", wish.conflicts);
        };
        assert!(conflict.contains("/run/driver"), "{conflict}");
    }
}
