//! Answer to a request for devices: the edits to the container, with annotations and CDI names for
//! the kubelet and notes for the operator.

use std::collections::BTreeMap;

use config::{Handover, Sharing};
use model::{Device, Extras, ResourceName};

use crate::{ContainerEdits, ResolvedLists};

/// Devices of one vendor for one container.
#[derive(Clone, Copy, Debug)]
pub struct EditRequest<'a> {
    /// Name of the requested resource.
    pub resource: &'a ResourceName,
    /// Devices in the order of the request, each once.
    pub devices: &'a [&'a Device],
    /// Sharing of the devices. Its method is never `auto`.
    pub sharing: &'a Sharing,
    /// Parts that the pool hands over.
    pub handover: &'a Handover,
    /// Strategies by which the container runtime learns of the devices.
    pub lists: &'a ResolvedLists,
    /// Findings of the vendor's probe beside the devices.
    pub extras: &'a Extras,
}

/// Edits to a container, with what else the kubelet gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Edits. In a final answer their device nodes are sorted by path, each once.
    pub edits: ContainerEdits,
    /// Annotations for the container runtime.
    pub annotations: BTreeMap<String, String>,
    /// Qualified names of CDI devices, which the kubelet passes on in the CRI field `CDIDevices`.
    pub cdi_devices: Vec<String>,
    /// Notes on parts that the container does not get, or gets in another way than the config
    /// demands.
    pub notes: Vec<GrantNote>,
}

/// Note for the operator on the handover of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantNote {
    /// Sentence without a full stop.
    pub text: String,
    /// True if containers miss something that the config demands.
    pub problem: bool,
}

// === impl EditRequest ===

impl EditRequest<'_> {
    /// Lists the paths of the devices' nodes on the host.
    pub fn node_paths(&self) -> impl Iterator<Item = String> {
        let nodes = self.devices.iter().flat_map(|device| &device.nodes);
        nodes.map(|node| node.path.clone())
    }
}

// === impl Grant ===

impl Grant {
    /// Adds the grant for another vendor's devices. A variable that is set already keeps its value,
    /// and a note tells so.
    pub fn add_grant(&mut self, other: Self) {
        let Self {
            edits,
            annotations,
            cdi_devices,
            notes,
        } = other;
        let taken = |(name, _): &(&String, &String)| self.edits.env.contains_key(*name);
        // The kubelet merges the answers for several resources in the same way: the first value
        // stays, and a conflict is only logged.
        for (name, value) in edits.env.iter().filter(taken) {
            let text = format!("{name} is set by two vendors; `{value}` is left out");
            self.notes.push(GrantNote::new_problem(text));
        }
        self.edits.append_edits(edits);
        self.annotations.extend(annotations);
        self.cdi_devices.extend(cdi_devices);
        self.notes.extend(notes);
    }
}

impl From<ContainerEdits> for Grant {
    fn from(edits: ContainerEdits) -> Self {
        Self {
            edits,
            ..Self::default()
        }
    }
}

// === impl GrantNote ===

impl GrantNote {
    /// Creates a note without need to act.
    pub fn new_info(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: false,
        }
    }

    /// Creates a note on something that containers miss.
    pub fn new_problem(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_two_vendors_is_the_first_ones_and_a_note_says_so() {
        let of = |value: &str| {
            let mut edits = ContainerEdits::default();
            edits.set_variable("DEVICES", value);
            Grant::from(edits)
        };
        let mut all = of("0");
        all.add_grant(of("1"));
        assert_eq!(all.edits.env["DEVICES"], "0");
        assert!(all.notes[0].problem && all.notes[0].text.contains("`1` is left out"));
    }
}
