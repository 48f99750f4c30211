//! Reads a tree into a [`File`]. Invalid values are noted and left out.

use super::{File, FlagsSection, GfdFlags, Imex, NamedPattern, PluginFlags, SleepInterval};
use crate::{
    nvidia::sharing::{self, Most},
    source::{
        Fields, Item, Notes, Said,
        take::{boolean, section, text, texts},
    },
};

/// Reads the whole file. Empty if the text has no map.
pub(super) fn file(notes: &mut Notes) -> File {
    let Some(tree) = notes.tree() else {
        return File::default();
    };
    let Some(mut at) = Item::root(&tree).fields(notes) else {
        return File::default();
    };
    version(&mut at, notes);
    let flags = section(&mut at, notes, "flags", flags);
    let (gpus, mig) = section(&mut at, notes, "resources", |at, notes| {
        (patterns(at, notes, "gpus"), patterns(at, notes, "mig"))
    });
    let (time_slicing, mps) = section(&mut at, notes, "sharing", |at, notes| {
        let (slicing, mps) = (at.take(notes, "timeSlicing"), at.take(notes, "mps"));
        if let (Some(slicing), Some(mps)) = (&slicing, &mps) {
            let line = mps.place().line;
            let message = format!("not used, because there is `mps` in line {line} too");
            notes.warn(
                slicing.place(),
                &slicing.key,
                message,
                "remove one of the two",
            );
        }
        let mut read = |item: Option<Item<'_>>, most| sharing::read(&item?, notes, most);
        (read(slicing, Most::SLICES), read(mps, Most::CLIENTS))
    });
    let imex = section(&mut at, notes, "imex", imex);
    at.finish(notes);
    File {
        flags,
        gpus,
        mig,
        time_slicing,
        mps,
        imex,
        ..File::default()
    }
}

fn version(at: &mut Fields<'_>, notes: &mut Notes) {
    let Some(version) = text(at, notes, "version") else {
        return;
    };
    if !matches!(version.value.as_str(), "" | "v1") {
        let message = format!("`{}` is not a version that can be read", version.value);
        notes.error(version.place, "version", message, "write `version: v1`");
    }
}

fn flags(at: &mut Fields<'_>, notes: &mut Notes) -> FlagsSection {
    FlagsSection {
        mig_strategy: text(at, notes, "migStrategy"),
        fail_on_init_error: boolean(at, notes, "failOnInitError"),
        mps_root: text(at, notes, "mpsRoot"),
        driver_root: text(at, notes, "nvidiaDriverRoot"),
        dev_root: text(at, notes, "nvidiaDevRoot"),
        gdrcopy: boolean(at, notes, "gdrcopyEnabled"),
        gds: boolean(at, notes, "gdsEnabled"),
        mofed: boolean(at, notes, "mofedEnabled"),
        use_node_feature_api: boolean(at, notes, "useNodeFeatureAPI"),
        discovery: text(at, notes, "deviceDiscoveryStrategy"),
        plugin: section(at, notes, "plugin", plugin),
        gfd: section(at, notes, "gfd", gfd),
    }
}

fn plugin(at: &mut Fields<'_>, notes: &mut Notes) -> PluginFlags {
    PluginFlags {
        pass_device_specs: boolean(at, notes, "passDeviceSpecs"),
        device_list_strategy: texts(at, notes, "deviceListStrategy"),
        device_id_strategy: text(at, notes, "deviceIDStrategy"),
        cdi_annotation_prefix: text(at, notes, "cdiAnnotationPrefix"),
        ctk_path: text(at, notes, "nvidiaCTKPath"),
        container_driver_root: text(at, notes, "containerDriverRoot"),
        allocation_policy: text(at, notes, "sharedDevicesAllocationPolicy"),
    }
}

fn gfd(at: &mut Fields<'_>, notes: &mut Notes) -> GfdFlags {
    GfdFlags {
        oneshot: boolean(at, notes, "oneshot"),
        no_timestamp: boolean(at, notes, "noTimestamp"),
        sleep_interval: interval(at, notes),
        output_file: text(at, notes, "outputFile"),
        machine_type_file: text(at, notes, "machineTypeFile"),
    }
}

/// Reads a duration: a text, or a number of nanoseconds.
fn interval(at: &mut Fields<'_>, notes: &mut Notes) -> Option<Said<SleepInterval>> {
    let item = at.take(notes, "sleepInterval")?;
    if let Some((text, true)) = item.scalar()
        && let Ok(nanos) = text.parse::<f64>()
        && nanos.abs() < 9.2e18
    {
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        return Some(item.said(SleepInterval::from_nanos(nanos as i64)));
    }
    item.parsed(
        notes,
        "write it as 60s, 5m or infinite; a number alone is nanoseconds",
    )
}

fn patterns(at: &mut Fields<'_>, notes: &mut Notes, name: &'static str) -> Vec<NamedPattern> {
    let Some(items) = at.take(notes, name).and_then(|item| item.list(notes)) else {
        return Vec::new();
    };
    let read = |item: &Item<'_>| {
        let mut at = item.fields(notes)?;
        let pattern = at.take(notes, "pattern");
        let resource = sharing::name(&mut at, notes, "name", true);
        if pattern.is_none() {
            let key = at.key("pattern");
            let help = "say what it matches, e.g. `pattern: \"*A100*\"`";
            notes.error(at.place, &key, "`pattern` is missing", help);
        }
        at.finish(notes);
        let pattern = pattern?;
        let text = pattern.text(notes)?;
        if text.value.is_empty() {
            let help = "say what it matches, or remove it";
            notes.warn(
                text.place,
                &pattern.key,
                "an empty pattern matches nothing",
                help,
            );
            return None;
        }
        Some(NamedPattern {
            pattern: text,
            name: resource?,
        })
    };
    items.iter().filter_map(read).collect()
}

fn imex(at: &mut Fields<'_>, notes: &mut Notes) -> Imex {
    let ids = at.take(notes, "channelIDs").and_then(|item| {
        let list = item.list(notes)?;
        let read = |one: &Item<'_>| {
            let number = match one.scalar() {
                Some((text, true)) => text.parse::<i64>().ok(),
                _ => None,
            };
            if number.is_none() {
                let help = "channels are whole numbers; only 0 can be used";
                one.error(notes, "not a whole number", help);
            }
            number
        };
        let ids = list.iter().filter_map(read).collect();
        Some(item.said(ids))
    });
    Imex {
        channel_ids: ids,
        required: boolean(at, notes, "required"),
    }
}
