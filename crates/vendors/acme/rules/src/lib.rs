//! Rules of a made-up vendor, compiled for tests only. They use everything that a vendor can
//! define, and prove that a vendor needs only this folder, `config/src/backends/acme.rs` and a line
//! in the list of vendors. Cards of this vendor can be cut in halves, are linked by rings, need a
//! calibration node beside their own, and announce traps.

use config::{AcmeHalves, Backends, Method, Sharing};
use model::{Device, Entry, EventCode, Kind};
use rules::{
    ContainerEdits, ContainerNode, EditRequest, Eligibility, EventMeaning, Grant, KindEdits,
    MissingRequirement, NamedEdits, ResourceNeed, Rules, ScoreTable, SpecRequest, SpecScope, Specs,
    Vendor,
};

/// Rules of the vendor.
#[derive(Clone, Copy, Debug)]
pub struct Acme;

/// Class of the calibration nodes, which every container needs.
pub const CALIBRATION: &str = "calibration";

/// CDI kind of the devices.
const KIND: &str = "acme.example/npu";

/// Name and words of the vendor.
pub const ACME: Vendor = Vendor {
    name: "acme",
    partition: "slice",
    partition_mode: "slice mode",
    link: "ring",
    switch: "hub",
    link_mark: "RG",
    // One ring scores more than a PCIe switch, and a second ring adds nothing.
    worth: ScoreTable {
        board: 9,
        switch: 8,
        switches: 7,
        host_bridge: 6,
        node: 5,
        system: 1,
        lane: 20,
        most_lanes: 1,
        same_numa: 1,
    },
    cdi_kinds: &[KIND],
    device_variable: Some("ACME_VISIBLE_DEVICES"),
};

// === impl Acme ===

impl Rules for Acme {
    fn vendor(&self) -> &'static Vendor {
        &ACME
    }

    fn divide_devices(&self, entries: &[&Entry], settings: &Backends) -> Vec<Eligibility> {
        let is_hidden = settings.acme.halves == AcmeHalves::Hidden;
        let standing = |entry: &&Entry| match entry.device.kind {
            Kind::Card { partitioned: false } => Eligibility::Offered,
            Kind::Card { partitioned: true } => Eligibility::Partitioned,
            Kind::Partition { .. } if is_hidden => {
                Eligibility::Unfit("`backends.acme.halves` is hidden".to_owned())
            }
            Kind::Partition { .. } => Eligibility::Offered,
        };
        entries.iter().map(standing).collect()
    }

    fn share_obstacle(&self, device: &Device, sharing: &Sharing) -> Option<String> {
        let is_half = matches!(device.kind, Kind::Partition { .. });
        match sharing.method {
            Method::None => None,
            Method::Mps | Method::Auto => Some("it has no MPS".to_owned()),
            Method::TimeSlicing => {
                (is_half && sharing.replicas > 2).then(|| "a half has two queues".to_owned())
            }
        }
    }

    fn find_missing(&self, need: &ResourceNeed<'_>) -> Option<MissingRequirement> {
        let is_there = !need.companions.list_class(CALIBRATION).is_empty();
        (!is_there).then(|| MissingRequirement {
            reason: "no calibration node is there; load the module acme-cal".to_owned(),
            is_required: false,
        })
    }

    fn edit_container(&self, request: &EditRequest<'_>) -> Grant {
        let ids: Vec<&str> = request.devices.iter().map(|d| d.id.as_str()).collect();
        let mut grant = Grant::default();
        grant.edits.set_variable("ACME_DEVICES", ids.join(","));
        if request.lists.has_strategy(config::ListStrategy::CdiCri) {
            grant.cdi_devices = ids.iter().map(|id| format!("{KIND}={id}")).collect();
        }
        if !request.lists.only_cdi() {
            let companions = request
                .extras
                .companions
                .list_class(CALIBRATION)
                .iter()
                .cloned();
            for path in request.node_paths().chain(companions) {
                let node = ContainerNode::new("/".as_ref(), &path);
                grant.edits.device_nodes.push(node);
            }
        }
        grant
    }

    fn make_specs(&self, request: &SpecRequest<'_>) -> Result<Specs, String> {
        let devices = request.snapshot.devices.iter().map(|entry| &entry.device);
        let devices = devices.filter(|device| device.vendor == ACME.name);
        let devices = devices.map(|device| {
            let nodes = device.nodes.iter().map(|node| ContainerNode {
                path: node.path.clone(),
                ..ContainerNode::default()
            });
            NamedEdits {
                name: device.id.to_string(),
                container_edits: ContainerEdits {
                    device_nodes: nodes.collect(),
                    ..ContainerEdits::default()
                },
                ..NamedEdits::default()
            }
        });
        let spec = KindEdits {
            kind: KIND.to_owned(),
            devices: devices.collect(),
            ..KindEdits::default()
        };
        let specs = match request.scope {
            SpecScope::Management(_) => Vec::new(),
            SpecScope::Asked { .. } | SpecScope::Everything(_) if spec.devices.is_empty() => {
                Vec::new()
            }
            SpecScope::Asked { .. } | SpecScope::Everything(_) => vec![spec],
        };
        Ok(Specs {
            specs,
            notes: Vec::new(),
        })
    }

    fn interpret_event(&self, code: &EventCode, settings: &Backends) -> Option<EventMeaning> {
        let number = code.code_number().filter(|_| code.code_class() == "trap")?;
        Some(EventMeaning {
            action: settings.acme.trap,
            text: format!("trap {number}"),
        })
    }

    fn reset_command(&self, devices: &[&Device]) -> Option<Vec<String>> {
        let ids = devices.iter().map(|device| device.id.to_string());
        let command = ["acmectl", "reset"].map(str::to_owned);
        Some(command.into_iter().chain(ids).collect())
    }
}
