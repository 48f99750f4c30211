//! Check of a probe's report before it is used. A device that fails the check is left out; the
//! others stay.

use model::{Device, NodePattern};

use crate::protocol::Report;

/// Highest number of warnings that name a device each.
const NAMED: usize = 3;

/// Removes the devices with a device node that the probe may not name, and adds a warning for them.
/// `allow` is `None` for a built-in probe, which may name any. Sets the vendor of every device to
/// `backend`: the vendor selects the rules, so a probe must not choose another one.
pub(super) fn admit_devices(backend: &str, allow: Option<&[NodePattern]>, report: &mut Report) {
    let mut refused = Vec::new();
    report.devices.retain_mut(|device| {
        backend.clone_into(&mut device.vendor);
        let node = allow.and_then(|allow| foreign_node(device, allow));
        if let Some(node) = node {
            refused.push(format!(
                "{} is left out: it names the device node {node}, which backends.{backend}.allow does \
                 not have",
                device.id
            ));
        }
        node.is_none()
    });
    let more = refused.len().saturating_sub(NAMED);
    report.warnings.extend(refused.into_iter().take(NAMED));
    if more > 0 {
        let warning = format!("{more} more devices are left out for the same reason");
        report.warnings.push(warning);
    }
}

/// Finds the first device node that no pattern allows.
fn foreign_node<'d>(device: &'d Device, allow: &[NodePattern]) -> Option<&'d str> {
    let mut nodes = device.nodes.iter().map(|node| node.path.as_str());
    nodes.find(|node| !allow.iter().any(|pattern| pattern.matches_path(node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DeviceNode, NodeRole};

    fn device(id: &str, node: &str) -> Device {
        let node = DeviceNode {
            path: node.to_owned(),
            role: NodeRole::Own,
        };
        Device {
            nodes: vec![node],
            ..Device::bare_card("nvidia", id)
        }
    }

    #[test]
    fn a_device_with_a_foreign_node_is_left_out_and_the_others_stay() {
        let mut report = Report {
            devices: vec![device("a", "/dev/crypto0"), device("b", "/dev/mem")],
            ..Report::default()
        };
        let allow = ["/dev/crypto*".parse().unwrap()];
        admit_devices("crypto", Some(&allow), &mut report);
        let kept: Vec<(&str, &str)> = report
            .devices
            .iter()
            .map(|device| (device.id.as_str(), device.vendor.as_str()))
            .collect();
        assert_eq!(
            kept,
            [("a", "crypto")],
            "of the vendor that the config names"
        );
        let [warning] = &report.warnings[..] else {
            panic!("{:?}", report.warnings);
        };
        assert!(warning.contains("/dev/mem") && warning.contains("backends.crypto.allow"));
    }

    #[test]
    fn many_devices_are_counted_and_not_named() {
        let devices = (0..100).map(|n| device(&n.to_string(), "/dev/mem"));
        let mut report = Report {
            devices: devices.collect(),
            ..Report::default()
        };
        admit_devices("crypto", Some(&[]), &mut report);
        assert_eq!(report.devices, []);
        assert_eq!(report.warnings.len(), NAMED + 1);
        assert!(report.warnings[NAMED].starts_with("97 more"));
    }

    #[test]
    fn a_probe_of_this_program_may_name_any_node() {
        let mut report = Report {
            devices: vec![device("a", "/dev/nvidia0")],
            ..Report::default()
        };
        admit_devices("nvidia", None, &mut report);
        assert_eq!(report.devices.len(), 1);
    }
}
