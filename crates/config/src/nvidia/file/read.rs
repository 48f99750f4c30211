//! Reads a tree into a [`V1File`]. Invalid values are noted and left out.

use super::{
    FlagsSection, GfdFlags, ImexSection, NamedPattern, PluginFlags, SleepInterval, V1File,
};
use crate::{
    nvidia::sharing::{self, ReplicaLimit},
    source::{
        FileFields, FileItem, Placed, ReadNotes,
        take::{take_bool, take_section, take_string, take_strings},
    },
};

/// Reads the whole file. Empty if the text has no map.
pub(super) fn read_v1_tree(notes: &mut ReadNotes) -> V1File {
    let Some(tree) = notes.parse_tree() else {
        return V1File::default();
    };
    let Some(mut at) = FileItem::of_file(&tree).read_fields(notes) else {
        return V1File::default();
    };
    check_version(&mut at, notes);
    let flags = take_section(&mut at, notes, "flags", read_flags);
    let (gpus, mig) = take_section(&mut at, notes, "resources", |at, notes| {
        (patterns(at, notes, "gpus"), patterns(at, notes, "mig"))
    });
    let (time_slicing, mps) = take_section(&mut at, notes, "sharing", |at, notes| {
        let (slicing, mps) = (at.take_key(notes, "timeSlicing"), at.take_key(notes, "mps"));
        if let (Some(slicing), Some(mps)) = (&slicing, &mps) {
            let line = mps.value_place().line;
            let message = format!("not used, because there is `mps` in line {line} too");
            notes.note_warning(
                slicing.value_place(),
                &slicing.key,
                message,
                "remove one of the two",
            );
        }
        let mut read =
            |item: Option<FileItem<'_>>, most| sharing::read_replicated(&item?, notes, most);
        (
            read(slicing, ReplicaLimit::SLICES),
            read(mps, ReplicaLimit::CLIENTS),
        )
    });
    let imex = take_section(&mut at, notes, "imex", read_imex);
    at.note_unknown_keys(notes);
    V1File {
        flags,
        gpus,
        mig,
        time_slicing,
        mps,
        imex,
        ..V1File::default()
    }
}

fn check_version(at: &mut FileFields<'_>, notes: &mut ReadNotes) {
    let Some(version) = take_string(at, notes, "version") else {
        return;
    };
    if !matches!(version.value.as_str(), "" | "v1") {
        let message = format!("`{}` is not a version that can be read", version.value);
        notes.note_error(version.place, "version", message, "write `version: v1`");
    }
}

fn read_flags(at: &mut FileFields<'_>, notes: &mut ReadNotes) -> FlagsSection {
    FlagsSection {
        mig_strategy: take_string(at, notes, "migStrategy"),
        fail_on_init_error: take_bool(at, notes, "failOnInitError"),
        mps_root: take_string(at, notes, "mpsRoot"),
        driver_root: take_string(at, notes, "nvidiaDriverRoot"),
        dev_root: take_string(at, notes, "nvidiaDevRoot"),
        gdrcopy: take_bool(at, notes, "gdrcopyEnabled"),
        gds: take_bool(at, notes, "gdsEnabled"),
        mofed: take_bool(at, notes, "mofedEnabled"),
        use_node_feature_api: take_bool(at, notes, "useNodeFeatureAPI"),
        discovery: take_string(at, notes, "deviceDiscoveryStrategy"),
        plugin: take_section(at, notes, "plugin", plugin),
        gfd: take_section(at, notes, "gfd", gfd),
    }
}

fn plugin(at: &mut FileFields<'_>, notes: &mut ReadNotes) -> PluginFlags {
    PluginFlags {
        pass_device_specs: take_bool(at, notes, "passDeviceSpecs"),
        device_list_strategy: take_strings(at, notes, "deviceListStrategy"),
        device_id_strategy: take_string(at, notes, "deviceIDStrategy"),
        cdi_annotation_prefix: take_string(at, notes, "cdiAnnotationPrefix"),
        ctk_path: take_string(at, notes, "nvidiaCTKPath"),
        container_driver_root: take_string(at, notes, "containerDriverRoot"),
        allocation_policy: take_string(at, notes, "sharedDevicesAllocationPolicy"),
    }
}

fn gfd(at: &mut FileFields<'_>, notes: &mut ReadNotes) -> GfdFlags {
    GfdFlags {
        oneshot: take_bool(at, notes, "oneshot"),
        no_timestamp: take_bool(at, notes, "noTimestamp"),
        sleep_interval: interval(at, notes),
        output_file: take_string(at, notes, "outputFile"),
        machine_type_file: take_string(at, notes, "machineTypeFile"),
    }
}

/// Reads a duration: a text, or a number of nanoseconds.
fn interval(at: &mut FileFields<'_>, notes: &mut ReadNotes) -> Option<Placed<SleepInterval>> {
    let item = at.take_key(notes, "sleepInterval")?;
    if let Some((text, true)) = item.scalar()
        && let Ok(nanos) = text.parse::<f64>()
        && nanos.abs() < 9.2e18
    {
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        return Some(item.with_place(SleepInterval::from_nanos(nanos as i64)));
    }
    item.parse_string(
        notes,
        "write it as 60s, 5m or infinite; a number alone is nanoseconds",
    )
}

fn patterns(
    at: &mut FileFields<'_>,
    notes: &mut ReadNotes,
    name: &'static str,
) -> Vec<NamedPattern> {
    let Some(items) = at
        .take_key(notes, name)
        .and_then(|item| item.read_list(notes))
    else {
        return Vec::new();
    };
    let read = |item: &FileItem<'_>| {
        let mut at = item.read_fields(notes)?;
        let pattern = at.take_key(notes, "pattern");
        let resource = sharing::read_resource_name(&mut at, notes, "name", true);
        if pattern.is_none() {
            let key = at.full_key("pattern");
            let help = "say what it matches, e.g. `pattern: \"*A100*\"`";
            notes.note_error(at.place, &key, "`pattern` is missing", help);
        }
        at.note_unknown_keys(notes);
        let pattern = pattern?;
        let text = pattern.read_string(notes)?;
        if text.value.is_empty() {
            let help = "say what it matches, or remove it";
            notes.note_warning(
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

fn read_imex(at: &mut FileFields<'_>, notes: &mut ReadNotes) -> ImexSection {
    let ids = at.take_key(notes, "channelIDs").and_then(|item| {
        let list = item.read_list(notes)?;
        let read = |one: &FileItem<'_>| {
            let number = match one.scalar() {
                Some((text, true)) => text.parse::<i64>().ok(),
                _ => None,
            };
            if number.is_none() {
                let help = "channels are whole numbers; only 0 can be used";
                one.note_item_error(notes, "not a whole number", help);
            }
            number
        };
        let ids = list.iter().filter_map(read).collect();
        Some(item.with_place(ids))
    });
    ImexSection {
        channel_ids: ids,
        required: take_bool(at, notes, "required"),
    }
}
