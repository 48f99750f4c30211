//! What each value of `ostler.yaml` says may be right, and the whole still wrong.

mod handover;
mod prepare;

use model::{PciAddress, ResourceName};

use super::{File, PoolFile};
use crate::{
    Handover, KindName, Method, Policy, Selector, Sharing,
    source::{Fields, Notes, among},
};

/// The most clients that one MPS daemon takes.
const MOST_MPS: u32 = Sharing::MOST_MPS;
/// What can be filled into a resource name, with an example of each.
const PLACEHOLDERS: [(&str, &str); 5] = [
    ("profile", "1g.5gb"),
    ("model", "nvidia-l4"),
    ("memory", "40gb"),
    ("vendor", "nvidia"),
    ("index", "0"),
];

pub(crate) use self::handover::{prefix, relative};

/// A message and its remedy.
type Words = (String, String);

/// Checks the whole file.
pub(super) fn file(file: &File, notes: &mut Notes) {
    if let Some(exclude) = &file.exclude
        && exclude.value.contains(&Selector::default())
    {
        let help = "say which devices, or write `pools: []` to offer nothing";
        notes.error(
            exclude.place,
            "exclude",
            "an empty selector excludes every device",
            help,
        );
    }
    handover::check(&file.handover, "handover", notes);
    let Some(pools) = &file.pools else { return };
    let base = file.handover.over(&Handover::default());
    for (n, pool) in pools.iter().enumerate() {
        let key = format!("pools[{n}]");
        names(pool, &key, notes);
        sharing(pool, &key, &pool.handover.over(&base), notes);
        placement(pool, &key, notes);
        prepare::pool(pool, &key, notes);
        reserved(pool, &key, notes);
        handover::check(&pool.handover, &format!("{key}.handover"), notes);
        against(pool, &pools[..n], &base, (&key, notes));
    }
}

/// Whether a text makes resource names.
fn template(template: &str) -> Result<(), Words> {
    let mut name = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((placeholder, after)) = after.split_once('}') else {
            let help = "close it, as in `nvidia.com/{model}`".to_owned();
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
                        `.`, e.g. `nvidia.com/gpu`";
            Err((error.to_string(), help.to_owned()))
        }
    }
}

/// Checks one selector.
pub(super) fn selector(selector: &Selector, at: &Fields<'_>, notes: &mut Notes) {
    let mut wrong = |name: &str, message: String, help: &str| {
        notes.error(at.key_place(name), &at.key(name), message, help);
    };
    if let (Some(least), Some(most)) = (selector.min_memory, selector.max_memory)
        && least > most
    {
        let message = format!("no device has at least {least} and at most {most}");
        wrong("minMemory", message, "exchange the two, or remove one");
    }
    if selector.kind == Some(KindName::Card) && !selector.mig_profile.is_empty() {
        let message = "whole cards have no MIG profile: this never matches".to_owned();
        wrong(
            "migProfile",
            message,
            "write `kind: partition`, or remove one of the two",
        );
    }
    for pci in &selector.pci {
        if !pci.contains('*') && pci.parse::<PciAddress>().is_err() {
            let message = format!("`{pci}` is not a PCI address");
            wrong(
                "pci",
                message,
                "write it as `0000:3b:00.0`, or a pattern such as `*:3b:00.*`",
            );
        }
    }
    for index in &selector.index {
        let digits = |c: char| c.is_ascii_digit() || c == '*';
        let part = |part: &str| !part.is_empty() && part.chars().all(digits);
        if index.split(':').count() > 2 || !index.split(':').all(part) {
            let message = format!("`{index}` is not an index");
            wrong(
                "index",
                message,
                "write `3` for a card, `3:0` for one of its MIG devices",
            );
        }
    }
    let texts = [
        ("vendor", &selector.vendor),
        ("model", &selector.model),
        ("uuid", &selector.uuid),
        ("migProfile", &selector.mig_profile),
    ];
    for (name, texts) in texts {
        if texts.iter().any(String::is_empty) {
            let message = "an empty text matches nothing".to_owned();
            wrong(
                name,
                message,
                "write a value, or a pattern such as `NVIDIA A100*`",
            );
        }
    }
}

fn names(pool: &PoolFile, key: &str, notes: &mut Notes) {
    let resource = &pool.resource;
    if let Err((message, help)) = template(&resource.value.0) {
        notes.error(resource.place, &format!("{key}.resource"), message, help);
    }
    let cards = |selector: &Selector| selector.kind == Some(KindName::Card);
    let selectors = pool.select.as_ref().map(|said| &said.value);
    if resource.value.0.contains("{profile}")
        && selectors.is_some_and(|all| !all.is_empty() && all.iter().all(cards))
    {
        let message = "whole cards have no `{profile}`";
        let help = "use `{model}` or `{memory}`, or select `kind: partition`";
        notes.error(resource.place, &format!("{key}.resource"), message, help);
    }
}

fn sharing(pool: &PoolFile, key: &str, handover: &Handover, notes: &mut Notes) {
    let said = &pool.sharing;
    let place = said.method.as_ref().map(|said| said.place);
    let place = place.or(said.replicas.as_ref().map(|said| said.place));
    let Some(place) = place else { return };
    let sharing = said.resolve();
    let shared = sharing.method != Method::None;
    let replicas = said.replicas.as_ref();
    let key_of = |name: &str| format!("{key}.sharing.{name}");
    if let Some(replicas) = replicas.filter(|said| !shared && said.value > 1) {
        let help = "choose time-slicing, mps or auto, or remove `replicas`";
        let message = "with method none a device is not shared";
        notes.error(replicas.place, &key_of("replicas"), message, help);
    }
    if shared && sharing.replicas < 2 {
        let place = replicas.map_or(place, |said| said.place);
        let help = "write `replicas:` with 2 or more";
        let message = "to share a device, it must become at least 2 units";
        notes.error(place, &key_of("replicas"), message, help);
    }
    if sharing.method == Method::Mps {
        if sharing.replicas > MOST_MPS {
            let place = replicas.map_or(place, |said| said.place);
            let message = format!("an MPS daemon takes at most {MOST_MPS} clients");
            let help = format!("write at most {MOST_MPS}, or use time-slicing");
            notes.error(place, &key_of("replicas"), message, help);
        }
        if handover.mps_root.is_none() {
            let help =
                "name the daemon's folder on the host: `handover: {mpsRoot: /run/nvidia/mps}`";
            notes.error(
                place,
                &key_of("method"),
                "MPS needs `handover.mpsRoot`",
                help,
            );
        }
    }
}

fn placement(pool: &PoolFile, key: &str, notes: &mut Notes) {
    let (policy, weights) = (&pool.placement.policy, &pool.placement.weights);
    let weighted = policy
        .as_ref()
        .is_none_or(|said| said.value == Policy::Weighted);
    if let Some(weights) = weights {
        let key = format!("{key}.placement.weights");
        if !weighted {
            let help = "write `policy: weighted`, or remove the weights";
            notes.error(
                weights.place,
                &key,
                "only the policy weighted has weights",
                help,
            );
        } else if weights.value == crate::Weights::default() {
            let help = "give link, numa, load, temperature or power a number above 0";
            notes.error(
                weights.place,
                &key,
                "all weights are 0: nothing counts",
                help,
            );
        }
    } else if let Some(policy) = policy
        .as_ref()
        .filter(|said| said.value == Policy::Weighted)
    {
        let help = "write them, e.g. `placement: {policy: weighted, weights: {link: 2, numa: 1}}`";
        let key = format!("{key}.placement.policy");
        notes.error(
            policy.place,
            &key,
            "the policy weighted needs `weights`",
            help,
        );
    }
}

fn reserved(pool: &PoolFile, key: &str, notes: &mut Notes) {
    let Some(reserved) = &pool.reserved else {
        return;
    };
    if reserved.value.contains(&Selector::default()) {
        let help = "say which devices, e.g. `reserved: {index: 0}`";
        let message = "an empty selector reserves every device of the pool";
        notes.error(reserved.place, &format!("{key}.reserved"), message, help);
    }
}

/// Checks a pool against those before it.
fn against(pool: &PoolFile, before: &[PoolFile], base: &Handover, at: (&str, &mut Notes)) {
    let (key, notes) = at;
    if let Some(same) = before
        .iter()
        .find(|other| other.name.value == pool.name.value)
    {
        let message = format!(
            "`{}` is the pool of line {} too",
            pool.name.value, same.name.place.line
        );
        let help = "give each pool a name of its own";
        notes.error(pool.name.place, &format!("{key}.name"), message, help);
    }
    let like = |other: &&PoolFile| other.resource.value == pool.resource.value;
    if let Some(same) = before.iter().find(like)
        && (same.sharing.resolve() != pool.sharing.resolve()
            || same.placement.resolve() != pool.placement.resolve()
            || same.prepare() != pool.prepare()
            || same.handover.over(base) != pool.handover.over(base))
    {
        let name = &same.name.value;
        let message = format!(
            "pool `{name}` has the same resource name, but is shared, placed or handed over in another way"
        );
        let help = "a pod cannot tell them apart: give one of them another name";
        notes.error(
            pool.resource.place,
            &format!("{key}.resource"),
            message,
            help,
        );
    }
    let all = |other: &&PoolFile| {
        let select = other.select.as_ref().map(|said| &said.value);
        let everything =
            select.is_none_or(|all| all.is_empty() || all.contains(&Selector::default()));
        other.limit.is_none() && everything
    };
    if let Some(all) = before.iter().find(all) {
        let message = format!(
            "nothing is left for it: pool `{}` takes every device",
            all.name.value
        );
        notes.warn(
            pool.name.place,
            key,
            message,
            "put the pool that takes all devices last",
        );
    }
}
