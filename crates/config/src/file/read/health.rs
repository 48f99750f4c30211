//! The section `health` of a tree.

use std::collections::BTreeMap;

use super::{choice, command, path, period, section};
use crate::{
    MonitorLoss, PeriodOrOff, UnknownAs, Weight, XidAction, XidSet,
    file::{HealthFile, ThresholdsFile, WeightsFile},
    source::{Fields, Item, Notes, Said},
};

pub(super) fn health(at: &mut Fields<'_>, notes: &mut Notes) -> HealthFile {
    HealthFile {
        unanswered_grace: period(at, notes, "unansweredGrace"),
        gone_grace: period(at, notes, "goneGrace"),
        ignore_xids: some_xids(at, notes, "ignoreXids"),
        heed_xids: some_xids(at, notes, "heedXids"),
        unknown: choice(at, notes, "unknown", &UnknownAs::WORDS),
        on_monitor_loss: choice(at, notes, "onMonitorLoss", &MonitorLoss::WORDS),
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
        weights: section(at, notes, "weights", weights),
        thresholds: section(at, notes, "thresholds", thresholds),
        xids: xids(at, notes),
        unknown_xids: choice(at, notes, "unknownXids", &XidAction::WORDS),
        state_file: path(at, notes, "stateFile"),
    }
}

fn weights(at: &mut Fields<'_>, notes: &mut Notes) -> WeightsFile {
    WeightsFile {
        working: choice(at, notes, "working", &Weight::WORDS),
        performing: choice(at, notes, "performing", &Weight::WORDS),
        trend: choice(at, notes, "trend", &Weight::WORDS),
        deep: choice(at, notes, "deep", &Weight::WORDS),
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
    }
}

fn every(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> Option<Said<PeriodOrOff>> {
    let help = "write a number and a unit, e.g. 60s, 5m, or off";
    at.take(notes, name)?.parsed(notes, help)
}

fn xids(at: &mut Fields<'_>, notes: &mut Notes) -> Option<Said<BTreeMap<u32, XidAction>>> {
    let item = at.take(notes, "xids")?;
    let mut found = BTreeMap::new();
    for (name, place, item) in item.fields(notes)?.items() {
        let Ok(number) = name.parse() else {
            let message = format!("`{name}` is not the number of an XID");
            let help = "write a map from numbers, e.g. `xids: {94: reset}`";
            notes.error(place, &item.key, message, help);
            continue;
        };
        let Some(action) = item.choice(notes, &XidAction::WORDS) else {
            continue;
        };
        if found.insert(number, action.value).is_some() {
            notes.error(place, &item.key, "said twice", "remove one of them");
        }
    }
    Some(item.said(found))
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
