//! The section `health` of a tree.

use std::collections::BTreeMap;

use model::CauseKind;

use super::{command, period};
use crate::{
    PeriodOrOff, TierWeights, XidSet,
    file::{HealthFile, ThresholdsFile, WeightsFile},
    source::{
        Fields, Item, Notes, Said, Word, among,
        take::{choice, path, section},
    },
};

pub(super) fn health(at: &mut Fields<'_>, notes: &mut Notes) -> HealthFile {
    HealthFile {
        unanswered_grace: period(at, notes, "unansweredGrace"),
        gone_grace: period(at, notes, "goneGrace"),
        unknown: choice(at, notes, "unknown"),
        on_monitor_loss: choice(at, notes, "onMonitorLoss"),
        monitor_loss_grace: period(at, notes, "monitorLossGrace"),
        hold_down: period(at, notes, "holdDown"),
        hold_down_limit: period(at, notes, "holdDownLimit"),
        hold_down_memory: period(at, notes, "holdDownMemory"),
        passes: at
            .take(notes, "passes")
            .and_then(|item| item.number(notes, 1..=100)),
        residue_hold: period(at, notes, "residueHold"),
        working: every(at, notes, "working"),
        performing: every(at, notes, "performing"),
        trend: every(at, notes, "trend"),
        deep: every(at, notes, "deep"),
        deep_command: command(at, notes, "deepCommand"),
        deep_limit: period(at, notes, "deepLimit"),
        weights: section(at, notes, "weights", weights),
        thresholds: section(at, notes, "thresholds", thresholds),
        xid_base: choice(at, notes, "xidBase"),
        xids: by_name(at, notes, "xids", xid),
        unknown_xids: choice(at, notes, "unknownXids"),
        ignore_xids: some_xids(at, notes, "ignoreXids"),
        heed_xids: some_xids(at, notes, "heedXids"),
        state_file: path(at, notes, "stateFile"),
    }
}

fn weights(at: &mut Fields<'_>, notes: &mut Notes) -> WeightsFile {
    WeightsFile {
        working: choice(at, notes, "working"),
        performing: choice(at, notes, "performing"),
        trend: choice(at, notes, "trend"),
        deep: choice(at, notes, "deep"),
        causes: by_name(at, notes, "causes", cause),
    }
}

fn thresholds(at: &mut Fields<'_>, notes: &mut Notes) -> ThresholdsFile {
    let mut number = |name, most| at.take(notes, name)?.number(notes, 0..=most);
    let (ecc_uncorrected, nvlink_errors) = (
        number("eccUncorrected", u32::MAX),
        number("nvlinkErrors", u32::MAX),
    );
    let temperature_margin = number("temperatureMargin", 100);
    let busy_percent = number("busyPercent", 100);
    let mut limit = |name| {
        let help = "write a whole number, or off";
        at.take(notes, name)?.parsed(notes, help)
    };
    ThresholdsFile {
        ecc_uncorrected,
        temperature_margin,
        busy_percent,
        nvlink_errors,
        ecc_corrected_per_hour: limit("eccCorrectedPerHour"),
        remapped_rows_per_hour: limit("remappedRowsPerHour"),
        pcie_replays_per_hour: limit("pcieReplaysPerHour"),
        mean_watts: limit("meanWatts"),
        fabric_join: period(at, notes, "fabricJoin"),
        mean_time: period(at, notes, "meanTime"),
    }
}

fn every(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> Option<Said<PeriodOrOff>> {
    let help = "write a number and a unit, e.g. 60s, 5m, or off";
    at.take(notes, name)?.parsed(notes, help)
}

/// A map from names that are not the same in every file. `name` reads one, or says what is wrong
/// with it and what to do.
fn by_name<K: Ord, T: Word>(
    at: &mut Fields<'_>,
    notes: &mut Notes,
    key: &'static str,
    name: impl Fn(&str) -> Result<K, (String, String)>,
) -> Option<Said<BTreeMap<K, T>>> {
    let item = at.take(notes, key)?;
    let mut found = BTreeMap::new();
    for (text, place, item) in item.fields(notes)?.items() {
        let name = match name(text) {
            Ok(name) => name,
            Err((message, help)) => {
                notes.error(place, &item.key, message, help);
                continue;
            }
        };
        let Some(value) = item.choice::<T>(notes) else {
            continue;
        };
        if found.insert(name, value.value).is_some() {
            notes.error(place, &item.key, "said twice", "remove one of them");
        }
    }
    Some(item.said(found))
}

fn xid(name: &str) -> Result<u32, (String, String)> {
    let help = "write a map from numbers, e.g. `xids: {94: reset}`";
    let message = || format!("`{name}` is not the number of an XID");
    name.parse().map_err(|_| (message(), help.to_owned()))
}

/// A cause by its name in `ostler health`.
fn cause(name: &str) -> Result<CauseKind, (String, String)> {
    let names = TierWeights::CAUSES.map(|cause| format!("{cause:?}"));
    let at = names.iter().position(|known| known == name);
    at.map(|at| TierWeights::CAUSES[at]).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let help = among(name, "those that can have one are", &names);
        (
            format!("`{name}` is not a cause that can have a weight"),
            help,
        )
    })
}

fn some_xids(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> Option<Said<XidSet>> {
    let item = at.take(notes, name)?;
    if item.scalar() == Some(("all", true)) {
        return Some(item.said(XidSet::All));
    }
    let read = |one: &Item<'_>| Some(one.number(notes, 0..=u32::MAX)?.value);
    let codes = item.one_or_many().iter().filter_map(read).collect();
    Some(item.said(XidSet::Some(codes)))
}
