//! Trait that each vendor implements. Each method but `vendor` has a default that fits a plain
//! device node.

use config::{Backends, Method, Sharing};
use model::{Device, Entry, EventCode};

use crate::{
    ContainerEdits, ContainerNode, EditRequest, Eligibility, EventMeaning, Grant,
    MissingRequirement, ResourceNeed, ScoreTable, SpecRequest, Specs, division,
};

/// Name of a vendor, its words for things that every vendor has, and the scores of its links. Data
/// without code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Name in every device of the vendor, in lower case.
    pub name: &'static str,
    /// Word for a partition of a card.
    pub partition: &'static str,
    /// Word for the mode in which only the partitions of a card can be used.
    pub partition_mode: &'static str,
    /// Word for a direct link between two cards.
    pub link: &'static str,
    /// Word for the switch that connects all cards.
    pub switch: &'static str,
    /// Letters before the number of links in the matrix of `ostler topology`.
    pub link_mark: &'static str,
    /// Scores of the connections between two cards.
    pub worth: ScoreTable,
    /// CDI kinds of the vendor's specs, as `vendor/class`, in the order of the names that a
    /// container gets. Empty if the devices are handed over without CDI.
    pub cdi_kinds: &'static [&'static str],
    /// Environment variable that selects one device, by id, for the vendor's programs.
    pub device_variable: Option<&'static str>,
}

/// Rules of one vendor's devices.
///
/// Each vendor implements the trait once, in its own folder. The default of each method fits a
/// plain device node. All methods are pure: they must not do I/O or ask a driver.
///
/// ```
/// use rules::{PLAIN, Rules, Vendor, Vendors};
///
/// struct Crypto;
///
/// const CRYPTO: Vendor = Vendor { name: "crypto", ..PLAIN };
///
/// impl Rules for Crypto {
///     fn vendor(&self) -> &'static Vendor {
///         &CRYPTO
///     }
/// }
///
/// const VENDORS: Vendors = Vendors::new(&[&Crypto]);
/// assert_eq!(VENDORS.find_rules("crypto").vendor().partition, "partition");
/// ```
pub trait Rules: Sync {
    /// Returns the vendor's name and words.
    fn vendor(&self) -> &'static Vendor;

    /// Decides for each device if pools may take it. The answers are in the order of `entries`,
    /// which are all devices of the vendor that may be offered. A missing answer counts as
    /// [`Eligibility::Offered`].
    fn divide_devices(&self, entries: &[&Entry], _settings: &Backends) -> Vec<Eligibility> {
        entries.iter().map(|entry| division::mixed(entry)).collect()
    }

    /// Returns the reason why a device cannot be shared by a method, with the remedy; `None` if it
    /// can. For `auto`: the reason why `auto` does not choose MPS.
    fn share_obstacle(&self, _device: &Device, sharing: &Sharing) -> Option<String> {
        let why = match sharing.method {
            Method::None | Method::TimeSlicing => return None,
            Method::Mps => "its vendor has no MPS: share it by time-slicing, in a pool of its own",
            Method::Auto => "its vendor has no MPS",
        };
        Some(why.to_owned())
    }

    /// Returns the first thing that is missing on the node before a resource can be handed out.
    fn find_missing(&self, _need: &ResourceNeed<'_>) -> Option<MissingRequirement> {
        None
    }

    /// Returns the edits for a container with devices of this vendor, with annotations and CDI
    /// names for the kubelet. The default hands over the device nodes.
    fn edit_container(&self, request: &EditRequest<'_>) -> Grant {
        let node = |path: String| ContainerNode::new("/".as_ref(), &path);
        Grant::from(ContainerEdits {
            device_nodes: request.node_paths().map(node).collect(),
            ..ContainerEdits::default()
        })
    }

    /// Returns the CDI specs of this vendor's kinds, at most one for each.
    ///
    /// # Errors
    /// The reason why no specs can be made yet. The files on the disk then stay as they are.
    fn make_specs(&self, _request: &SpecRequest<'_>) -> Result<Specs, String> {
        Ok(Specs::default())
    }

    /// Returns the meaning of an event for its device; `None` for a code of another vendor. Each
    /// vendor has its own classes of codes.
    fn interpret_event(&self, _code: &EventCode, _settings: &Backends) -> Option<EventMeaning> {
        None
    }

    /// Returns the command that resets these devices, all at once: a program and its arguments.
    /// `None` if the vendor has no such program; a pool with `preStart: reset` must then name one.
    fn reset_command(&self, _devices: &[&Device]) -> Option<Vec<String>> {
        None
    }
}

/// Rules of devices whose vendor the product does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRules;

/// Words for devices whose vendor the product does not know.
pub const PLAIN: Vendor = Vendor {
    name: "",
    partition: "partition",
    partition_mode: "partition mode",
    link: "link",
    switch: "switch",
    link_mark: "L",
    worth: ScoreTable::PLAIN,
    cdi_kinds: &[],
    device_variable: None,
};

// === impl PlainRules ===

impl Rules for PlainRules {
    fn vendor(&self) -> &'static Vendor {
        &PLAIN
    }
}
