//! Specs of five driver layouts, and properties of all of them.

mod boards;
mod contents;
mod layouts;
mod rules;

use std::sync::Arc;

use cdi::{CdiSpec, check_spec};
use config::{IdStrategy, NvidiaCdi};
use model::{Device as Card, Driver, DriverFiles, Extras, Snapshot};

use super::*;
use crate::sample::{
    all_extras, four_cards, handover_pool, indexed_card, indexed_partition, offer_of_devices,
    with_extras,
};

const VERSION: &str = "580.95.05";

/// Makes a machine with these devices and driver files.
fn machine(devices: Vec<Card>, files: DriverFiles) -> Snapshot {
    let extras = Extras {
        files: Some(Arc::new(files)),
        ..all_extras()
    };
    let offer = with_extras(
        extras,
        offer_of_devices("nvidia.com/gpu", handover_pool(|_| ()), devices),
    );
    let mut snapshot = Snapshot::clone(&offer.snapshot);
    for backend in &mut snapshot.backends {
        backend.driver = Some(Driver {
            version: VERSION.to_owned(),
            cuda: None,
            library: None,
            instance: None,
        });
    }
    snapshot
}

fn cdi() -> NvidiaCdi {
    NvidiaCdi::default()
}

/// Specs as they are written to files.
struct Written {
    specs: Vec<CdiSpec>,
    notes: Vec<String>,
}

fn written(made: Specs) -> Written {
    Written {
        specs: made.specs.into_iter().map(CdiSpec::from).collect(),
        notes: made.notes,
    }
}

fn made(snapshot: &Snapshot, wish: &SpecContents, cdi: &NvidiaCdi) -> Written {
    written(by_class(snapshot, wish, cdi, &[]))
}

/// Makes specs again, with those of an earlier round given as `before`.
fn made_after(
    before: &Written,
    snapshot: &Snapshot,
    wish: &SpecContents,
    cdi: &NvidiaCdi,
) -> Written {
    let previous = before.specs.iter().cloned().map(KindEdits::from);
    let previous: Vec<KindEdits> = previous.collect();
    written(by_class(snapshot, wish, cdi, &previous))
}

/// Returns the spec of a class, which must exist.
fn spec<'a>(made: &'a Written, class: &str) -> &'a CdiSpec {
    let mut specs = made.specs.iter();
    specs.find(|spec| spec.kind_class() == class).unwrap()
}

fn device<'a>(spec: &'a CdiSpec, name: &str) -> &'a NamedEdits {
    spec.find_device(name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn paths(edits: &ContainerEdits) -> Vec<&str> {
    let nodes = edits.device_nodes.iter();
    nodes.map(|node| node.path.as_str()).collect()
}

fn inside(edits: &ContainerEdits) -> Vec<&str> {
    let mounts = edits.mounts.iter();
    mounts.map(|mount| mount.container_path.as_str()).collect()
}

/// Makes contents that include everything.
fn all() -> SpecContents {
    SpecContents {
        ids: vec![IdStrategy::Uuid, IdStrategy::Index],
        gds: true,
        gdrcopy: true,
        mofed: true,
        imex: [0, 1, 7].into(),
        ..SpecContents::default()
    }
}
