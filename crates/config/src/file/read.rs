//! A tree → [`File`]. Everything that is wrong is noted; what is right is taken.

mod pool;

use super::{File, HandoverFile};
use crate::{
    ListStrategy, Period,
    source::{
        self, Fields, Item, Notes, Said, Section, read_section,
        take::{boolean, choice, many, path, section, text},
    },
};

/// Reads the whole file.
pub(super) fn file(notes: &mut Notes) -> File {
    let Some(tree) = notes.tree() else {
        return File::default();
    };
    let Some(mut fields) = Item::root(&tree).fields(notes) else {
        return File::default();
    };
    let at = &mut fields;
    let file = File {
        fail_on_init_error: boolean(at, notes, "failOnInitError"),
        kubelet: known(at, notes, "kubelet"),
        host_root: path(at, notes, "hostRoot"),
        control_socket: path(at, notes, "controlSocket"),
        probe: known(at, notes, "probe"),
        backends: known(at, notes, "backends"),
        health: known(at, notes, "health"),
        cdi: known(at, notes, "cdi"),
        imex_required: boolean(at, notes, "imexRequired"),
        mig: choice(at, notes, "mig"),
        include: pool::selectors(at, notes, "include"),
        exclude: pool::selectors(at, notes, "exclude"),
        handover: section(at, notes, "handover", handover),
        pools: pool::all(at, notes),
        ..File::default()
    };
    fields.finish(notes);
    file
}

fn handover(at: &mut Fields<'_>, notes: &mut Notes) -> HandoverFile {
    HandoverFile {
        lists: lists(at, notes),
        ids: choice(at, notes, "ids"),
        device_nodes: boolean(at, notes, "deviceNodes"),
        dev_root: path(at, notes, "devRoot"),
        annotation_prefix: text(at, notes, "annotationPrefix"),
        capabilities: text(at, notes, "capabilities"),
        gds: boolean(at, notes, "gds"),
        gdrcopy: boolean(at, notes, "gdrcopy"),
        mofed: boolean(at, notes, "mofed"),
        imex: many(at, notes, "imex", |item, notes| {
            item.number(notes, 0..=2047).map(|said| said.value)
        }),
        mps_root: path(at, notes, "mpsRoot"),
    }
}

fn lists(at: &mut Fields<'_>, notes: &mut Notes) -> Option<Said<Vec<ListStrategy>>> {
    let lists = many(at, notes, "lists", |item, notes| {
        item.choice(notes).map(|said| said.value)
    })?;
    Some(lists.map(|mut lists| {
        lists.sort();
        lists.dedup();
        lists
    }))
}

fn known<S: Section + Default>(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> S {
    let mut section = S::default();
    if let Some(item) = at.take(notes, name) {
        read_section(&item, notes, &mut section);
    }
    section
}

fn command(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<Vec<String>>> {
    let item = at.take(notes, name)?;
    source::command(&item, notes).map(|words| item.said(words))
}

fn period(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> Option<Said<Period>> {
    let help = "write a number and a unit, e.g. 500ms, 10s, 5m";
    at.take(notes, name)?.parsed(notes, help)
}
