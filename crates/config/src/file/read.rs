//! A tree → [`File`]. Everything that is wrong is noted; what is right is taken.

mod health;
mod pool;

use super::{BackendsFile, CdiFile, File, HandoverFile, KubeletFile, NvidiaBackendFile, ProbeFile};
use crate::{
    ListStrategy, Period,
    source::{
        Fields, Item, Notes, Said,
        take::{boolean, choice, many, path, section, text, texts},
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
        kubelet: section(at, notes, "kubelet", kubelet),
        host_root: path(at, notes, "hostRoot"),
        control_socket: path(at, notes, "controlSocket"),
        probe: section(at, notes, "probe", probe),
        backends: section(at, notes, "backends", backends),
        health: section(at, notes, "health", health::health),
        cdi: section(at, notes, "cdi", cdi),
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

fn kubelet(at: &mut Fields<'_>, notes: &mut Notes) -> KubeletFile {
    KubeletFile {
        dir: path(at, notes, "dir"),
        pod_resources_socket: path(at, notes, "podResourcesSocket"),
        register: boolean(at, notes, "register"),
    }
}

fn probe(at: &mut Fields<'_>, notes: &mut Notes) -> ProbeFile {
    ProbeFile {
        period: period(at, notes, "period"),
        call_limit: period(at, notes, "callLimit"),
        driver_call_limit: period(at, notes, "driverCallLimit"),
        retry_pause: period(at, notes, "retryPause"),
    }
}

fn backends(at: &mut Fields<'_>, notes: &mut Notes) -> BackendsFile {
    BackendsFile {
        nvidia: section(at, notes, "nvidia", |at, notes| NvidiaBackendFile {
            driver_path: path(at, notes, "driverPath"),
            loader_fallback: boolean(at, notes, "loaderFallback"),
            nvml_library: path(at, notes, "nvmlLibrary"),
            dev_path: path(at, notes, "devPath"),
            mps_path: path(at, notes, "mpsPath"),
            discovery: choice(at, notes, "discovery"),
        }),
    }
}

fn cdi(at: &mut Fields<'_>, notes: &mut Notes) -> CdiFile {
    CdiFile {
        dir: path(at, notes, "dir"),
        runtime: choice(at, notes, "runtime"),
        driver_root: path(at, notes, "driverRoot"),
        hook_path: path(at, notes, "hookPath"),
        feature_flags: texts(at, notes, "featureFlags"),
        disable_hooks: texts(at, notes, "disableHooks"),
    }
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

/// A command: a text is for the shell, a list is a program and its arguments.
fn command(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<Vec<String>>> {
    let item = at.take(notes, name)?;
    let words: Option<Vec<String>> = match item.is_list() {
        true => item
            .list(notes)?
            .iter()
            .map(|word| word.text(notes).map(|said| said.value))
            .collect(),
        false => {
            let text = item.text(notes)?.value;
            Some(["/bin/sh", "-c", &text].map(str::to_owned).into())
        }
    };
    let words = words?;
    let text_is_empty = !item.is_list() && words.last().is_some_and(|text| text.trim().is_empty());
    if text_is_empty || words.first().is_some_and(String::is_empty) {
        let help = "write a text for `/bin/sh -c`, or a list: a program and its arguments";
        item.error(notes, "the command is empty", help);
        return None;
    }
    Some(item.said(words))
}

fn period(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> Option<Said<Period>> {
    let help = "write a number and a unit, e.g. 500ms, 10s, 5m";
    at.take(notes, name)?.parsed(notes, help)
}
