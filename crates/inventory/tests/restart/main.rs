//! An agent starts on any state file, and saves one on which the next agent starts.

mod start;

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Value, json};

use self::start::Starts;

/// Generates times: the first and the last valid one, some recent ones, and an invalid one.
fn moment() -> impl Strategy<Value = &'static str> {
    select(vec![
        "-009999-01-02T01:59:59Z",
        "1970-01-01T00:00:00Z",
        "2026-01-01T00:00:00.000000001Z",
        "2200-01-01T00:00:00Z",
        "9999-12-30T22:00:00.999999999Z",
        "yesterday",
    ])
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_u64, Just(u64::MAX), any::<u64>()]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof!["(GPU|MIG)-[0-3]", "\\PC{0,4}"]
}

fn event() -> impl Strategy<Value = Value> {
    let parts = (option::of(number()), moment(), number(), any::<bool>());
    parts.prop_map(
        |(xid, since, ago, asked)| json!({"xid": xid, "since": since, "ago": ago, "asked": asked}),
    )
}

fn standing() -> impl Strategy<Value = Value> {
    let check = select(vec![
        "lost",
        "gone",
        "not-answering",
        "monitor-down",
        "ecc",
        "fabric-joining",
        "condition:working:fabric",
        "repair-pending",
        "remap-pending",
        "retirement-pending",
        "deep",
        "strange",
    ]);
    let moments = (moment(), option::of(moment()), option::of(moment()));
    let parts = (check, "\\PC{0,8}", number(), moments);
    parts.prop_map(|(check, evidence, lasted, (since, unread, well))| {
        json!({
            "check": check, "evidence": evidence, "since": since, "lasted_ms": lasted,
            "unread": unread, "well": well,
        })
    })
}

fn begun() -> impl Strategy<Value = Value> {
    let what = select(vec!["lost", "residue", "ecc", "strange"]);
    let parts = (what, any::<u32>(), moment());
    parts.prop_map(|(what, times, last)| json!({"what": what, "times": times, "last": last}))
}

/// Generates a saved record.
fn saved() -> impl Strategy<Value = Value> {
    let troubles = (
        vec(event(), 0..4),
        vec(standing(), 0..4),
        vec(begun(), 0..4),
    );
    let orders = (
        option::of(moment()),
        option::of((moment(), moment())),
        option::of((moment(), number())),
    );
    let rest = (
        option::of(moment()),
        any::<[bool; 2]>(),
        option::of(number()),
    );
    let parts = (troubles, orders, rest);
    parts.prop_map(|((events, standing, begun), orders, rest)| {
        let (cordon, release, residue) = orders;
        let (seen, [away, asked], link_errors) = rest;
        json!({
            "backend": "nvidia", "seen": seen, "away": away, "asked": asked,
            "events": events, "standing": standing, "begun": begun,
            "link_errors": link_errors,
            "cordon": cordon.map(|since| json!({"reason": "a reason", "since": since})),
            "release": release.map(|(since, until)| json!({"since": since, "until": until})),
            "residue": residue
                .map(|(since, ago)| json!({"evidence": "pid 7", "since": since, "ago": ago})),
        })
    })
}

fn change() -> impl Strategy<Value = Value> {
    let state = select(vec!["Healthy", "Unhealthy", "Maintenance", "Strange"]);
    let parts = (id(), moment(), state);
    parts.prop_map(|(device, at, to)| {
        let cause = json!({"kind": "Ecc", "evidence": "", "since": at, "ends_when": ""});
        json!({"at": at, "device": device, "from": "Healthy", "to": to, "began": [cause], "ended": []})
    })
}

/// Generates the text of a state file that an agent might have written.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let boot = select(vec!["this boot", "another boot"]);
    let devices = btree_map(id(), saved(), 0..5);
    let released = btree_map(
        prop_oneof![
            Just("all".to_owned()),
            Just("0000:01:00.0".to_owned()),
            id()
        ],
        moment(),
        0..3,
    );
    let parts = (
        boot,
        select(vec!["1", "2"]),
        devices,
        vec(change(), 0..4),
        released,
    );
    parts.prop_map(|(boot, driver, devices, history, released)| {
        let facts = |id: &String| {
            let card = model::Device::card_of("nvidia", id.clone(), "A100");
            (id.clone(), json!(card))
        };
        let facts: serde_json::Map<_, _> = devices.keys().map(facts).collect();
        let state = json!({
            "health": {
                "version": 1, "boot_id": boot, "drivers": {"nvidia": driver},
                "devices": devices, "history": history,
            },
            "released": released, "facts": facts,
        });
        state.to_string().into_bytes()
    })
}

#[test]
fn an_agent_starts_on_any_bytes() {
    let starts = Starts::new();
    proptest!(ProptestConfig::with_cases(64), |(bytes in vec(any::<u8>(), 0..200))| {
        starts.check(&bytes);
    });
}

#[test]
fn an_agent_starts_on_what_another_one_left() {
    let starts = Starts::new();
    proptest!(|(file in file())| starts.check(&file));
}

#[test]
fn an_agent_starts_on_a_file_that_was_cut_or_spoilt() {
    let starts = Starts::new();
    let spoilt = (file(), any::<Index>(), option::of(any::<u8>()));
    proptest!(|((mut file, at, byte) in spoilt)| {
        let at = at.index(file.len());
        match byte {
            Some(byte) => file[at] = byte,
            None => file.truncate(at),
        }
        starts.check(&file);
    });
}
