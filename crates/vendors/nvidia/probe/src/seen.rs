//! Cards of the last survey. They are sampled and checked until the next one.

use std::time::Duration;

use model::{CardRef, Device, DeviceId, Reading, SinceReset, Tier};
use nvml::Session;
use probe::{
    Calls,
    protocol::{Checkup, Sample},
    sysfs::Files,
};

use super::{card::Card, checks, sensors, stage::Watched, topology::handle};

/// Card of the last survey: its reference, the id of the device that it is reported as, and NVML
/// indices and ids of its MIG devices.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) at: CardRef,
    pub(super) id: DeviceId,
    parts: Vec<(u32, DeviceId)>,
}

// === impl Seen ===

impl Seen {
    pub(super) fn of(card: &Card, merged: Option<&DeviceId>) -> Self {
        let parts = card.devices.iter().skip(1).map(|device| device.id.clone());
        let whole = &card.devices[0];
        Self {
            at: card.at,
            id: merged.unwrap_or(&whole.id).clone(),
            parts: card.places.iter().copied().zip(parts).collect(),
        }
    }

    /// Makes the check-ups of a tier for the card and its MIG devices. Links are read only if
    /// `links` is given: the table of calls in which they are marked. Joining the fabric may take
    /// as long as `join_limit` without a warning.
    pub(super) fn checkups(
        &self,
        session: &Session,
        tier: Tier,
        links: Option<&Calls>,
        join_limit: Duration,
    ) -> Vec<Checkup> {
        let checkup = |device: &DeviceId, reading: Reading| Checkup {
            device: device.clone(),
            reading,
        };
        let card = match handle(session, self.at) {
            Ok(card) => card,
            Err(error) => {
                let reading = checks::refused(&error, tier).into_iter();
                return reading.map(|reading| checkup(&self.id, reading)).collect();
            }
        };
        let whole = checks::card(card, tier, links, join_limit);
        let whole = whole.map(|reading| checkup(&self.id, reading));
        let parts = self.parts.iter().filter_map(|(place, id)| {
            let part = card.mig_device(*place).ok()?;
            Some(checkup(id, checks::partition(part, tier)?))
        });
        whole.into_iter().chain(parts).collect()
    }

    /// Reads the samples of the card and its MIG devices; with processes if `files` is given, from
    /// which their names are read.
    pub(super) fn samples(&self, session: &Session, files: Option<&Files>) -> Vec<Sample> {
        let read = handle(session, self.at)
            .ok()
            .and_then(|card| Some((card, sensors::read(card, files)?)));
        let Some((card, telemetry)) = read else {
            return Vec::new();
        };
        let whole = Sample {
            device: self.id.clone(),
            since_reset: sensors::since_reset(session, card, telemetry.ecc),
            telemetry,
        };
        let parts = self.parts.iter().filter_map(|(place, id)| {
            let part = card.mig_device(*place).ok()?;
            Some(Sample {
                device: id.clone(),
                telemetry: sensors::read_partition(part, files)?,
                since_reset: SinceReset::default(),
            })
        });
        std::iter::once(whole).chain(parts).collect()
    }
}

/// Converts a card into an entry of the event thread's watchlist.
pub(super) fn watched(card: &Card, merged: Option<&DeviceId>) -> Watched {
    let number = |device: &Device, name| {
        let value = device.attributes.get(&name)?.as_int()?;
        u32::try_from(value).ok()
    };
    let part = |device: &Device| {
        let gpu = number(device, nvidia_rules::names::GPU_INSTANCE)?;
        let compute = number(device, nvidia_rules::names::COMPUTE_INSTANCE)?;
        Some((gpu, compute, device.id.clone()))
    };
    Watched {
        at: card.at,
        id: merged.unwrap_or(&card.devices[0].id).clone(),
        partitions: card.devices.iter().filter_map(part).collect(),
    }
}
