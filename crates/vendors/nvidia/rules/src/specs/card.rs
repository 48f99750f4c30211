//! What a container has for one device alone.

use std::collections::BTreeMap;

use model::{Device as Card, Kind, NodeRole, names};

use rules::ContainerEdits;

use super::Maker;

/// The note on a card that tells how it sees the processor's memory.
const COHERENT: &str = "gpu.nvidia.com/coherent";

// === impl Maker ===

impl<'a> Maker<'a> {
    /// What a container has for one device alone.
    pub(super) fn edits(&self, card: &Card) -> ContainerEdits {
        let own = |card: &'a Card| {
            let nodes = card.nodes.iter();
            nodes.filter(|node| node.role != NodeRole::Control)
        };
        let parts = self.cards().into_iter().filter(|part| {
            // Who has the whole card has its parts.
            matches!(card.kind, Kind::Card { partitioned: true })
                && matches!(&part.kind, Kind::Partition { parent, .. } if *parent == card.id)
        });
        let nodes = card.nodes.iter();
        let nodes = nodes.filter(|node| node.role != NodeRole::Control);
        let nodes = nodes.chain(parts.flat_map(own)).map(|node| &node.path);
        let nodes = nodes.chain(&self.files.board_nodes);
        let mut edits = self.nodes.edits(nodes);
        if !edits.is_empty() && draws(card) {
            self.drm(card, &mut edits);
        }
        edits
    }

    /// What is noted of a device for programs. MIG devices have no such notes, as NVIDIA's have not.
    pub(super) fn annotations(&self, card: &Card) -> BTreeMap<String, String> {
        let wanted = self.flags.coherent && matches!(card.kind, Kind::Card { .. });
        let coherent = card.flag(&names::COHERENT).filter(|_| wanted);
        let notes = coherent.map(|coherent| (COHERENT.to_owned(), coherent.to_string()));
        notes.into_iter().collect()
    }

    /// The nodes for graphics, and the links by which they are found.
    fn drm(&self, card: &Card, edits: &mut ContainerEdits) {
        let Some((pci, nodes)) = card
            .pci
            .and_then(|pci| Some((pci, self.files.drm.get(&pci)?)))
        else {
            return;
        };
        edits.add(self.nodes.edits(nodes));
        let links = nodes.iter().filter_map(|path| {
            let name = path.rsplit('/').next()?;
            let what = match name {
                _ if name.starts_with("card") => "card",
                _ if name.starts_with("renderD") => "render",
                _ => return None,
            };
            Some(format!("../{name}::/dev/dri/by-path/pci-{pci}-{what}"))
        });
        edits.hooks.extend(self.hooks.links(links.collect()));
    }
}

/// Whether a device may draw: of MIG devices only those whose profile says so.
fn draws(card: &Card) -> bool {
    match &card.kind {
        Kind::Card { .. } => true,
        Kind::Partition { profile, .. } => profile
            .as_ref()
            .is_some_and(|profile| profile.contains("gfx")),
    }
}
