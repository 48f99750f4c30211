//! Variables and mounts of the pool's own `handover`, filled in with facts of the devices.

use config::ExtraMount;
use rules::{Grant, GrantNote, Mount};

use crate::grant::DeviceRequest;

/// Adds the variables and mounts of the handover. A variable that the vendor's rules have already
/// set keeps its value. A variable or mount that needs an unknown fact of a device is left out. In
/// both cases the grant gets a note.
pub(crate) fn add_edits(ask: &DeviceRequest<'_>, grant: &mut Grant) {
    for (name, template) in &ask.handover.env {
        if grant.edits.env.contains_key(name) {
            let text = format!("{name} is set by the vendor of the device, not by handover.env");
            grant.notes.push(GrantNote::new_problem(text));
            continue;
        }
        let values = ask.devices.iter().map(|device| {
            let filled = template.fill_facts(device);
            filled.map_err(|fact| format!("{name} is left out: {} does not have {fact}", device.id))
        });
        match values.collect::<Result<Vec<String>, String>>() {
            Ok(mut values) => {
                // Devices of one kind often give the same value. Equal neighbours are written once.
                values.dedup();
                grant.edits.set_variable(name, values.join(","));
            }
            Err(why) => grant.notes.push(GrantNote::new_problem(why)),
        }
    }
    for mount in &ask.handover.mounts {
        add_mount(ask, mount, grant);
    }
}

fn add_mount(ask: &DeviceRequest<'_>, mount: &ExtraMount, grant: &mut Grant) {
    for device in ask.devices {
        let (host, container) = match mount.fill_paths(device) {
            Ok(paths) => paths,
            Err(fact) => {
                let (path, id) = (&mount.host_path, &device.id);
                let text = format!("the mount {path} is left out: {id} does not have {fact}");
                grant.notes.push(GrantNote::new_problem(text));
                continue;
            }
        };
        // The kubelet's `Mount` has `read_only` only. The other options take effect where the edits
        // go into a CDI spec.
        let options = ["ro", "nosuid", "nodev", "bind"].map(str::to_owned);
        let made = Mount {
            host_path: host.to_string_lossy().into_owned(),
            container_path: container.to_string_lossy().into_owned(),
            options: if mount.read_only {
                options.into()
            } else {
                Vec::new()
            },
            ..Mount::default()
        };
        if !grant.edits.mounts.contains(&made) {
            grant.edits.mounts.push(made);
        }
    }
}
