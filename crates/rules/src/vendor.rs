//! The trait that a vendor implements. Each method has a default that fits a plain device node.

use config::{Backends, Method, Sharing};
use model::{Device, Entry, EventCode};

use crate::{
    ContainerEdits, DeviceNode, EditRequest, Grant, Meaning, Missing, Need, SpecRequest, Specs,
    Standing, Table, division,
};

/// A vendor's name, its own words for things that every vendor has, and the worth of its links: data
/// without code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The name that devices carry, in lower case.
    pub name: &'static str,
    /// A partition of a card, for people.
    pub partition: &'static str,
    /// The mode of a card in which only its partitions can be used, for people.
    pub partition_mode: &'static str,
    /// A direct link between two cards, for people.
    pub link: &'static str,
    /// The switch that joins all cards on it, for people.
    pub switch: &'static str,
    /// The letters before the number of links in a matrix of cards.
    pub link_mark: &'static str,
    /// The worth of each thing that can join two cards.
    pub worth: Table,
    /// The CDI kinds that its specs have, `vendor/class`, in the order of the names that a container is
    /// given; none where its devices are handed over without CDI.
    pub cdi_kinds: &'static [&'static str],
    /// The variable by which the vendor's programs are told the one device to use, by its id.
    pub device_variable: Option<&'static str>,
}

/// The rules of one vendor's devices.
///
/// Implemented once in each vendor's folder. A method without an implementation there does what fits a
/// device node without peculiarities.
pub trait Rules: Sync {
    /// The vendor's name and words.
    fn vendor(&self) -> &'static Vendor;

    /// The part that each device plays before the pools see it, in the order of `entries`, which are all
    /// devices of this vendor that may be offered.
    fn divide(&self, entries: &[&Entry], _settings: &Backends) -> Vec<Standing> {
        entries.iter().map(|entry| division::mixed(entry)).collect()
    }

    /// The reason why a device cannot be shared by a method, and its remedy. For `auto`: why the best method
    /// of the vendor is not chosen.
    fn share_obstacle(&self, _device: &Device, sharing: &Sharing) -> Option<String> {
        let why = match sharing.method {
            Method::None | Method::TimeSlicing => return None,
            Method::Mps => "its vendor has no MPS: share it by time-slicing, in a pool of its own",
            Method::Auto => "its vendor has no MPS",
        };
        Some(why.to_owned())
    }

    /// The first thing that is missing on the node before a resource can be handed out.
    fn missing(&self, _need: &Need<'_>) -> Option<Missing> {
        None
    }

    /// The edits for a container that is given devices of this vendor, and what goes with them to the kubelet: by
    /// default their device nodes.
    fn edits(&self, request: &EditRequest<'_>) -> Grant {
        let node = |path: String| DeviceNode::new("/".as_ref(), &path);
        Grant::from(ContainerEdits {
            device_nodes: request.nodes().map(node).collect(),
            ..ContainerEdits::default()
        })
    }

    /// The CDI specs of this vendor's kinds, at most one for each.
    ///
    /// # Errors
    /// The reason why specs cannot be made yet. Files on the disk stay as they are until they can.
    fn specs(&self, _request: &SpecRequest<'_>) -> Result<Specs, String> {
        Ok(Specs::default())
    }

    /// The meaning of an event for its device; `None` for a code that is not the vendor's. Each vendor has
    /// classes of codes of its own.
    fn event(&self, _code: &EventCode, _settings: &Backends) -> Option<Meaning> {
        None
    }

    /// The command that resets devices, all at once: a program and its arguments. `None` where the vendor
    /// has no tool for it, so that a pool with `preStart: reset` must name one.
    fn reset_command(&self, _devices: &[&Device]) -> Option<Vec<String>> {
        None
    }
}

/// The rules of devices whose vendor the product does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain;

/// The words for devices whose vendor the product does not know.
pub const PLAIN: Vendor = Vendor {
    name: "",
    partition: "partition",
    partition_mode: "partition mode",
    link: "link",
    switch: "switch",
    link_mark: "L",
    worth: Table::PLAIN,
    cdi_kinds: &[],
    device_variable: None,
};

// === impl Plain ===

impl Rules for Plain {
    fn vendor(&self) -> &'static Vendor {
        &PLAIN
    }
}
