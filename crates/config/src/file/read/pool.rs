//! The pools of a tree, and the selectors.

use super::{command, handover, period};
use crate::{
    Selector, Sharing, Size, Template, Weights,
    file::{PlacementFile, PoolFile, SharingFile, check},
    source::{
        Fields, Item, Notes, Said,
        take::{boolean, choice, inside, section, texts},
    },
};

pub(super) fn all(at: &mut Fields<'_>, notes: &mut Notes) -> Option<Vec<PoolFile>> {
    let items = at.take(notes, "pools")?.list(notes)?;
    let read = |item: &Item<'_>| {
        let mut fields = item.fields(notes)?;
        let pool = pool(&mut fields, notes);
        fields.finish(notes);
        pool
    };
    Some(items.iter().filter_map(read).collect())
}

fn pool(at: &mut Fields<'_>, notes: &mut Notes) -> Option<PoolFile> {
    let name = required(at, notes, "name", "every pool needs a name of its own");
    let select = selectors(at, notes, "select");
    let reserved = selectors(at, notes, "reserved");
    let limit = at.take(notes, "limit");
    let limit = limit.and_then(|item| item.number(notes, 1..=u32::MAX));
    let help = "name the resource, e.g. `resource: nvidia.com/gpu`";
    let resource = required(at, notes, "resource", help);
    let sharing = sharing(at, notes);
    let placement = placement(at, notes);
    let handover = section(at, notes, "handover", handover);
    let pre_start = choice(at, notes, "preStart");
    let pre_start_command = command(at, notes, "preStartCommand");
    let pre_start_limit = period(at, notes, "preStartLimit");
    Some(PoolFile {
        name: name?,
        select,
        reserved,
        limit,
        resource: resource?.map(Template),
        sharing,
        placement,
        handover,
        pre_start,
        pre_start_command,
        pre_start_limit,
    })
}

fn required(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
    help: &str,
) -> Option<Said<String>> {
    let Some(item) = at.take(notes, name) else {
        notes.error(
            at.place,
            &at.key(name),
            format!("`{name}` is missing"),
            help,
        );
        return None;
    };
    let text = item.text(notes)?;
    if text.value.is_empty() {
        item.error(notes, format!("`{name}` is empty"), help);
        return None;
    }
    Some(text)
}

fn sharing(at: &mut Fields<'_>, notes: &mut Notes) -> SharingFile {
    let Some(item) = at.take(notes, "sharing") else {
        return SharingFile::default();
    };
    if !item.is_map() {
        return SharingFile {
            method: item.choice(notes),
            ..SharingFile::default()
        };
    }
    inside(&item, notes, |at, notes| SharingFile {
        method: choice(at, notes, "method"),
        replicas: at
            .take(notes, "replicas")
            .and_then(|item| item.number(notes, 1..=Sharing::MOST)),
        one_per_request: boolean(at, notes, "onePerRequest"),
        distinct: choice(at, notes, "distinct"),
    })
}

fn placement(at: &mut Fields<'_>, notes: &mut Notes) -> PlacementFile {
    let Some(item) = at.take(notes, "placement") else {
        return PlacementFile::default();
    };
    if !item.is_map() {
        return PlacementFile {
            policy: item.choice(notes),
            weights: None,
        };
    }
    inside(&item, notes, |at, notes| PlacementFile {
        policy: choice(at, notes, "policy"),
        weights: at.take(notes, "weights").map(|item| {
            let weights = inside(&item, notes, weights);
            item.said(weights)
        }),
    })
}

fn weights(at: &mut Fields<'_>, notes: &mut Notes) -> Weights {
    let mut weight = |name| {
        let item = at.take(notes, name)?;
        Some(item.number(notes, 0..=1_000_000)?.value)
    };
    Weights {
        link: weight("link").unwrap_or_default(),
        numa: weight("numa").unwrap_or_default(),
        load: weight("load").unwrap_or_default(),
        temperature: weight("temperature").unwrap_or_default(),
        power: weight("power").unwrap_or_default(),
    }
}

pub(super) fn selectors(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    name: &'static str,
) -> Option<Said<Vec<Selector>>> {
    let item = at.take(notes, name)?;
    let mut found = Vec::new();
    for one in item.one_or_many() {
        let Some(mut fields) = one.fields(notes) else {
            continue;
        };
        let selector = selector(&mut fields, notes);
        check::selector(&selector, &fields, notes);
        fields.finish(notes);
        found.push(selector);
    }
    Some(item.said(found))
}

fn selector(at: &mut Fields<'_>, notes: &mut Notes) -> Selector {
    let mut patterns = |name| texts(at, notes, name).map_or_else(Vec::new, |said| said.value);
    let (vendor, model, uuid) = (patterns("vendor"), patterns("model"), patterns("uuid"));
    let (index, pci) = (patterns("index"), patterns("pci"));
    let mig_profile = patterns("migProfile");
    let mut memory = |name| {
        let item = at.take(notes, name)?;
        let size = item.parsed::<Size>(notes, "write a whole number with Gi, G, Mi or M")?;
        Some(size.value)
    };
    Selector {
        vendor,
        model,
        uuid,
        index,
        pci,
        mig_profile,
        min_memory: memory("minMemory"),
        max_memory: memory("maxMemory"),
        kind: choice(at, notes, "kind").map(|said| said.value),
        display: boolean(at, notes, "display").map(|said| said.value),
    }
}
