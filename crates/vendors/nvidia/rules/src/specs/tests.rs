//! Specs of five driver layouts, and properties of all of them.

mod boards;
mod contents;
mod layouts;
mod rules;

use std::sync::Arc;

use cdi::{Spec, check};
use config::{IdStrategy, NvidiaCdi};
use model::{Device as Card, Driver, DriverFiles, Extras, Snapshot};

use super::*;
use crate::sample::{card, cards, everything, offer, partition, pool, with};

const VERSION: &str = "580.95.05";

/// Makes a machine with these devices and driver files.
fn machine(devices: Vec<Card>, files: DriverFiles) -> Snapshot {
    let extras = Extras {
        files: Some(Arc::new(files)),
        ..everything()
    };
    let offer = with(extras, offer("nvidia.com/gpu", pool(|_| ()), devices));
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
    specs: Vec<Spec>,
    notes: Vec<String>,
}

fn written(made: Specs) -> Written {
    Written {
        specs: made.specs.into_iter().map(Spec::from).collect(),
        notes: made.notes,
    }
}

fn made(snapshot: &Snapshot, wish: &Wish, cdi: &NvidiaCdi) -> Written {
    written(by_class(snapshot, wish, cdi, &[]))
}

/// Makes specs again, with those of an earlier round given as `before`.
fn made_after(before: &Written, snapshot: &Snapshot, wish: &Wish, cdi: &NvidiaCdi) -> Written {
    let previous = before.specs.iter().cloned().map(KindEdits::from);
    let previous: Vec<KindEdits> = previous.collect();
    written(by_class(snapshot, wish, cdi, &previous))
}

/// Returns the spec of a class, which must exist.
fn spec<'a>(made: &'a Written, class: &str) -> &'a Spec {
    let mut specs = made.specs.iter();
    specs.find(|spec| spec.class() == class).unwrap()
}

fn device<'a>(spec: &'a Spec, name: &str) -> &'a NamedEdits {
    spec.device(name).unwrap_or_else(|| panic!("no {name}"))
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
fn all() -> Wish {
    Wish {
        ids: vec![IdStrategy::Uuid, IdStrategy::Index],
        gds: true,
        gdrcopy: true,
        mofed: true,
        imex: [0, 1, 7].into(),
        ..Wish::default()
    }
}
