//! The answer for devices of one request: the edits to the container, and beside them what a device plugin
//! tells the kubelet and a person.

use std::collections::BTreeMap;

use config::{Handover, Sharing};
use model::{Device, Extras, ResourceName};

use crate::{ContainerEdits, Lists};

/// Devices of one vendor that a container is to be given.
#[derive(Clone, Copy, Debug)]
pub struct EditRequest<'a> {
    /// The resource that was asked for.
    pub resource: &'a ResourceName,
    /// The devices, in the order of the request, each once.
    pub devices: &'a [&'a Device],
    /// The sharing of the devices; its method is not `auto`.
    pub sharing: &'a Sharing,
    /// The parts that the pool hands over.
    pub handover: &'a Handover,
    /// The ways in which the container runtime is told.
    pub lists: &'a Lists,
    /// The things that the vendor's probe found beside the devices.
    pub extras: &'a Extras,
}

/// The edits to a container, and what goes with them to the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The edits. As an answer their device nodes are sorted by path, each once.
    pub edits: ContainerEdits,
    /// Annotations for the container runtime.
    pub annotations: BTreeMap<String, String>,
    /// Fully qualified names of CDI devices, for the CRI.
    pub cdi_devices: Vec<String>,
    /// Sentences on what the container is not given, or in another way than asked for.
    pub notes: Vec<Note>,
}

/// A sentence on how devices are handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The sentence.
    pub text: String,
    /// True if containers miss something that the config asks for.
    pub problem: bool,
}

// === impl EditRequest ===

impl EditRequest<'_> {
    /// The device nodes of the devices, as host paths.
    pub fn nodes(&self) -> impl Iterator<Item = String> {
        let nodes = self.devices.iter().flat_map(|device| &device.nodes);
        nodes.map(|node| node.path.clone())
    }
}

// === impl Grant ===

impl Grant {
    /// Adds what is given for another vendor's devices. A variable that is set already stays, and a note says
    /// so.
    pub fn add(&mut self, other: Self) {
        let Self {
            edits,
            annotations,
            cdi_devices,
            notes,
        } = other;
        let taken = |(name, _): &(&String, &String)| self.edits.env.contains_key(*name);
        for (name, value) in edits.env.iter().filter(taken) {
            let text = format!("{name} is set by two vendors; `{value}` is left out");
            self.notes.push(Note::missing(text));
        }
        self.edits.add(edits);
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

// === impl Note ===

impl Note {
    /// Something to know.
    pub fn info(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            problem: false,
        }
    }

    /// Something that containers miss.
    pub fn missing(text: impl Into<String>) -> Self {
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
            edits.set("DEVICES", value);
            Grant::from(edits)
        };
        let mut all = of("0");
        all.add(of("1"));
        assert_eq!(all.edits.env["DEVICES"], "0");
        assert!(all.notes[0].problem && all.notes[0].text.contains("`1` is left out"));
    }
}
