//! Edits of a spec for one device.

use std::collections::BTreeMap;

use model::{Device as Card, Kind, NodeRole, names};

use rules::ContainerEdits;

use super::SpecsInProgress;

/// Annotation that tells if a card is coherent with the processor's memory.
const COHERENT: &str = "gpu.nvidia.com/coherent";

// === impl SpecsInProgress ===

impl<'a> SpecsInProgress<'a> {
    /// Returns the edits for one device, without those that all devices share.
    pub(super) fn device_edits(&self, card: &Card) -> ContainerEdits {
        let own = |card: &'a Card| {
            let nodes = card.nodes.iter();
            nodes.filter(|node| node.role != NodeRole::Control)
        };
        let parts = self.nvidia_devices().into_iter().filter(|part| {
            // A container with the whole card in MIG mode may use all of its MIG devices.
            matches!(card.kind, Kind::Card { partitioned: true })
                && matches!(&part.kind, Kind::Partition { parent, .. } if *parent == card.id)
        });
        let nodes = card.nodes.iter();
        let nodes = nodes.filter(|node| node.role != NodeRole::Control);
        let nodes = nodes.chain(parts.flat_map(own)).map(|node| &node.path);
        let nodes = nodes.chain(&self.files.board_nodes);
        let mut edits = self.nodes.make_node_edits(nodes);
        if !edits.is_empty() && can_draw(card) {
            self.add_drm(card, &mut edits);
        }
        edits
    }

    /// Returns the annotations of a device. MIG devices have none, as in NVIDIA's toolkit.
    pub(super) fn annotations(&self, card: &Card) -> BTreeMap<String, String> {
        let wanted = self.flags.coherent && matches!(card.kind, Kind::Card { .. });
        let coherent = card.bool_attribute(&names::COHERENT).filter(|_| wanted);
        let notes = coherent.map(|coherent| (COHERENT.to_owned(), coherent.to_string()));
        notes.into_iter().collect()
    }

    /// Adds the DRM nodes, and the links by which programs find them.
    fn add_drm(&self, card: &Card, edits: &mut ContainerEdits) {
        let Some((pci, nodes)) = card
            .pci
            .and_then(|pci| Some((pci, self.files.drm.get(&pci)?)))
        else {
            return;
        };
        edits.append_edits(self.nodes.make_node_edits(nodes));
        let links = nodes.iter().filter_map(|path| {
            let name = path.rsplit('/').next()?;
            let what = match name {
                _ if name.starts_with("card") => "card",
                _ if name.starts_with("renderD") => "render",
                _ => return None,
            };
            Some(format!("../{name}::/dev/dri/by-path/pci-{pci}-{what}"))
        });
        edits.hooks.extend(self.hooks.link_hook(links.collect()));
    }
}

/// Returns true if a device may use graphics. Of MIG devices only those with `gfx` in their profile
/// do, as in NVIDIA's toolkit.
fn can_draw(card: &Card) -> bool {
    match &card.kind {
        Kind::Card { .. } => true,
        Kind::Partition { profile, .. } => profile
            .as_ref()
            .is_some_and(|profile| profile.contains("gfx")),
    }
}
