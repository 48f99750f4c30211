//! Checks of pools whose options are valid one by one: options against each other, and pools
//! against each other.

use model::ResourceName;

use crate::{
    KindName, Method, Pool, PreStartMode, Selector, Sharing,
    backends::check_pool as check_vendors,
    source::{SectionReader, among},
};

/// Placeholders of a resource name, with an example value of each.
// A name is checked with these values. The real ones are known only when devices are.
const PLACEHOLDERS: [(&str, &str); 5] = [
    ("profile", "1g.5gb"),
    ("model", "model"),
    ("memory", "40gb"),
    ("vendor", "vendor"),
    ("index", "0"),
];

/// Message and its remedy.
type PoolFault = (String, String);

/// Checks the options of a pool against each other.
pub(super) fn check_pool_options(pool: &Pool, at: &mut SectionReader<'_>) {
    check_resource(pool, at);
    check_sharing(pool, at);
    check_vendors(pool, at);
    if pool.reserved.contains(&Selector::default()) {
        let message = "an empty selector reserves every device of the pool";
        let help = "say which devices, e.g. `reserved: {index: 0}`";
        at.note_option_error("reserved", message, help);
    }
    let shared = pool.sharing.method != Method::None;
    if shared && pool.pre_start.mode != PreStartMode::Off {
        let message = "the devices of this pool are shared: before a container starts, others may \
                       well be at work on them";
        at.note_option_error("preStart", message, "remove `preStart`, or `sharing`");
    }
}

/// Checks each pool against the pools before it.
pub(super) fn check_pools(pools: &[Pool], at: &mut SectionReader<'_>) {
    for (n, pool) in pools.iter().enumerate() {
        let before = || pools[..n].iter().enumerate();
        check_unique_name(n, pool, before(), at);
        check_same_resource(n, pool, before(), at);
        let all = |other: &&Pool| {
            let every = |selectors: &[Selector]| {
                selectors.is_empty() || selectors.contains(&Selector::default())
            };
            other.limit.is_none() && every(&other.selectors)
        };
        if let (Some(all), Some(place)) = (
            pools[..n].iter().find(all),
            at.option_place(&format!("pools[{n}].name")),
        ) {
            let message = format!(
                "nothing is left for it: pool `{}` takes every device",
                all.name
            );
            let help = "put the pool that takes all devices last";
            at.warn_at(place, &format!("pools[{n}]"), message, help);
        }
    }
}

/// Checks that no earlier pool has the pool's name.
fn check_unique_name<'p>(
    n: usize,
    pool: &Pool,
    mut before: impl Iterator<Item = (usize, &'p Pool)>,
    at: &mut SectionReader<'_>,
) {
    let key = format!("pools[{n}].name");
    let same = before.find(|(_, other)| other.name == pool.name);
    let same = same.and_then(|(n, _)| at.option_place(&format!("pools[{n}].name")));
    if let (Some(same), Some(_)) = (same, at.option_place(&key)) {
        let message = format!("`{}` is the pool of line {} too", pool.name, same.line);
        at.note_option_error(&key, message, "give each pool a name of its own");
    }
}

/// Checks that an earlier pool with the same resource name has the same sharing, placement,
/// `preStart` and handover.
// The kubelet has one list of devices and one plugin for a resource name
// (pkg/kubelet/cm/devicemanager/manager.go, ManagerImpl.endpoints), and chooses among all of them.
fn check_same_resource<'p>(
    n: usize,
    pool: &Pool,
    mut before: impl Iterator<Item = (usize, &'p Pool)>,
    at: &mut SectionReader<'_>,
) {
    let key = format!("pools[{n}].resource");
    let Some((_, same)) = before.find(|(_, other)| other.resource == pool.resource) else {
        return;
    };
    let differs = same.sharing != pool.sharing
        || same.placement != pool.placement
        || same.pre_start != pool.pre_start
        || same.handover != pool.handover;
    if differs && at.option_place(&key).is_some() {
        let message = format!(
            "pool `{}` has the same resource name, but is shared, placed or handed over in \
             another way",
            same.name
        );
        let help = "a pod cannot tell them apart: give one of them another name";
        at.note_option_error(&key, message, help);
    }
}

/// Checks that a template makes valid resource names. An error is a message and its remedy.
fn template(template: &str) -> Result<(), PoolFault> {
    let mut name = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((placeholder, after)) = after.split_once('}') else {
            let help = "close it, as in `example.com/{model}`".to_owned();
            return Err(("`{` is not closed".to_owned(), help));
        };
        let known = PLACEHOLDERS.iter().find(|(known, _)| *known == placeholder);
        let Some((_, example)) = known else {
            let names = PLACEHOLDERS.map(|(name, _)| name);
            let help = among(placeholder, "what can be filled in", &names);
            return Err((format!("`{{{placeholder}}}` cannot be filled in"), help));
        };
        name.push_str(before);
        name.push_str(example);
        rest = after;
    }
    name.push_str(rest);
    match name.parse::<ResourceName>() {
        Ok(_) => Ok(()),
        Err(error) => {
            let help = "write a domain and a name of at most 63 letters, digits, `-`, `_` and \
                        `.`, e.g. `example.com/gpu`";
            Err((error.to_string(), help.to_owned()))
        }
    }
}

fn check_resource(pool: &Pool, at: &mut SectionReader<'_>) {
    if at.option_place("resource").is_none() {
        return;
    }
    let resource = &pool.resource.0;
    if let Err((message, help)) = template(resource) {
        at.note_option_error("resource", message, help);
    }
    let cards = |selector: &Selector| selector.kind == Some(KindName::Card);
    let only_cards = !pool.selectors.is_empty() && pool.selectors.iter().all(cards);
    if resource.contains("{profile}") && only_cards {
        let help = "use `{model}` or `{memory}`, or select `kind: partition`";
        at.note_option_error("resource", "whole cards have no `{profile}`", help);
    }
}

fn check_sharing(pool: &Pool, at: &mut SectionReader<'_>) {
    let (method, replicas) = ("sharing.method", "sharing.replicas");
    let Some(any) = at.option_place(method).or(at.option_place(replicas)) else {
        return;
    };
    let Sharing {
        method: means,
        replicas: units,
        ..
    } = pool.sharing;
    let place = at.option_place(replicas).unwrap_or(any);
    if means == Method::None && units > 1 {
        let help = "choose time-slicing, mps or auto, or remove `replicas`";
        at.note_option_error(replicas, "with method none a device is not shared", help);
    }
    if means != Method::None && units < 2 {
        let message = "to share a device, it must become at least 2 units";
        at.error_at(place, replicas, message, "write `replicas:` with 2 or more");
    }
}
