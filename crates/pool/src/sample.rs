//! Devices and pools for the tests of this crate.

use std::sync::Arc;

use config::{Config, Method, Mig, Pool, Pools, Selector, Sharing};
use jiff::Timestamp;
use model::{
    Backend, Cause, CauseKind, Companions, Device, Entry, Extras, Kind, Snapshot, State, Verdict,
    sample,
};

use nvidia_rules::VENDORS;

use crate::NodePlan;

pub(crate) fn healthy_entry(device: Device) -> Entry {
    Entry::from(device)
}

/// Card `n`, an A100.
pub(crate) fn card_entry(n: u32) -> Entry {
    healthy_entry(Device {
        pci: format!("0000:{:02x}:00.0", n + 0x3b).parse().ok(),
        ..sample::sample_card(n)
    })
}

/// Card `n` in MIG mode.
pub(crate) fn mig_card(n: u32) -> Entry {
    let mut entry = card_entry(n);
    entry.device_mut().kind = Kind::Card { partitioned: true };
    entry
}

/// MIG device `m` of card `n`.
pub(crate) fn mig_entry<'a>(n: u32, m: u32, profile: impl Into<Option<&'a str>>) -> Entry {
    let mut device = Device {
        pci: card_entry(n).device.pci,
        ..sample::sample_partition(n, m)
    };
    if let Kind::Partition { profile: own, .. } = &mut device.kind {
        *own = profile.into().map(str::to_owned);
    }
    healthy_entry(device)
}

/// The device as Unhealthy, with this cause.
pub(crate) fn sick(entry: Entry, kind: CauseKind, evidence: &str) -> Entry {
    let cause = Cause {
        kind,
        evidence: evidence.to_owned(),
        since: Timestamp::UNIX_EPOCH,
        ends_when: "it is reset".to_owned(),
    };
    let verdict = Verdict {
        state: State::Unhealthy,
        causes: vec![cause],
        warnings: Vec::new(),
    };
    Entry { verdict, ..entry }
}

/// Snapshot of these devices, with a running MPS daemon for each of these resources.
pub(crate) fn snapshot_with(mut devices: Vec<Entry>, mps: &[&str]) -> Arc<Snapshot> {
    devices.sort_by(|a, b| a.device.id.cmp(&b.device.id));
    let backend = Backend {
        extras: Extras {
            companions: Companions::default().with_class(nvidia_rules::companions::MPS, mps),
            ..Extras::default()
        },
        ..sample::running_backend()
    };
    Arc::new(Snapshot {
        devices,
        backends: vec![backend],
        ..Snapshot::empty_at(Timestamp::UNIX_EPOCH)
    })
}

/// Plan of a node with NVIDIA's cards.
pub(crate) fn plan_node(config: &Config, snapshot: &Arc<Snapshot>) -> NodePlan {
    crate::plan_offers(config, VENDORS, snapshot)
}

/// Plan for these devices without any MPS daemon.
pub(crate) fn plan_of(config: &Config, devices: Vec<Entry>) -> NodePlan {
    plan_node(config, &snapshot_with(devices, &[]))
}

/// Default config with these pools.
pub(crate) fn config_with_pools(pools: Vec<Pool>) -> Config {
    config_with(Pools {
        pools,
        ..Pools::default()
    })
}

/// Default config with these settings for pools.
pub(crate) fn config_with(pools: Pools) -> Config {
    Config {
        pools,
        ..Config::default()
    }
}

/// Default config with this MIG strategy.
pub(crate) fn config_with_strategy(strategy: Mig) -> Config {
    let mut config = Config::default();
    config.backends.nvidia.mig = strategy;
    config.pools.pools = config.backends.default_pools();
    config
}

/// Pool for the devices with these indices.
pub(crate) fn pool_of_indices(indices: &[&str], pool: Pool) -> Pool {
    let index = indices.iter().map(|index| (*index).to_owned()).collect();
    let selectors = vec![Selector {
        index,
        ..Selector::default()
    }];
    Pool { selectors, ..pool }
}

/// Pool whose devices are shared.
pub(crate) fn shared_pool(method: Method, replicas: u32, pool: Pool) -> Pool {
    let sharing = Sharing {
        method,
        replicas,
        ..Sharing::default()
    };
    Pool { sharing, ..pool }
}

/// Plan as text: `resource: id id` for each offer, `device - reason` for each device that is not
/// offered, then the notes.
pub(crate) fn show_plan(plan: &NodePlan) -> String {
    let offers = plan.offers.iter().map(|offer| {
        let ids: Vec<&str> = offer.units.iter().map(|unit| unit.id.as_str()).collect();
        format!("{}: {}\n", offer.resource, ids.join(" "))
    });
    let aside = plan.aside.iter().map(|aside| {
        let pool = aside.pool.as_ref().map(|pool| format!(" of {pool}"));
        let pool = pool.unwrap_or_default();
        format!(
            "{}{pool} - {:?}: {}\n",
            aside.device, aside.kind, aside.reason
        )
    });
    let notes = plan.notes.iter().map(|note| format!("({})\n", note.text));
    offers.chain(aside).chain(notes).collect()
}
