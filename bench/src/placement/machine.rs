//! Simulated machines as the probe sees them, and what a pool offers of them.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use config::{Config, NvidiaProbe, Pool};
use jiff::Timestamp;
use model::{Entry, Snapshot};
use nvidia_probe::NvmlBackend;
use pool::Offer;
use probe::{child::ProbeBackend as _, protocol::Configure};

use crate::peer::Site;

/// What the probe sees of a simulated machine.
pub(super) fn read(profile: &str) -> anyhow::Result<Arc<Snapshot>> {
    let site = Site::make(profile)?;
    let configure = Configure {
        host_root: site.node.host_root(),
        ..Configure::default()
    };
    let section = NvidiaProbe {
        nvml_library: Some(site.node.driver_library()),
        ..NvidiaProbe::default()
    };
    let mut probe = NvmlBackend::new(&configure, section, Arc::default());
    let mut report = probe.survey_devices();
    probe.add_new_links(&mut report, true);
    ensure!(
        report.devices.len() == site.node.list_gpus()?.len(),
        "the probe does not see all cards of {profile}"
    );
    let mut snapshot = Snapshot::empty_at(Timestamp::UNIX_EPOCH);
    snapshot.devices = report.devices.into_iter().map(entry).collect();
    snapshot
        .devices
        .sort_by(|a, b| a.device.id.cmp(&b.device.id));
    Ok(Arc::new(snapshot))
}

/// What a pool offers of it.
pub(super) fn offer(snapshot: &Arc<Snapshot>, pool: Pool) -> anyhow::Result<Arc<Offer>> {
    let mut config = Config::default();
    config.pools.pools = vec![pool];
    let offers = pool::plan_offers(&config, nvidia_rules::VENDORS, snapshot).offers;
    let offer = offers.iter().next().context("the pool offers nothing")?;
    Ok(Arc::clone(offer))
}

fn entry(device: model::Device) -> Entry {
    Entry::from(device)
}
