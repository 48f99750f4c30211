//! Cards of the last survey. They are sampled and checked until the next one.

use std::time::Duration;

use model::{CardRef, Device, DeviceId, Reading, SinceReset, Tier};
use nvml::NvmlSession;
use probe::{
    CallTable,
    protocol::{Checkup, Sample},
    sysfs::HostFiles,
};

use super::{card::SurveyedCard, checks, sensors, stage::WatchedCard, topology::card_handle};

/// Card of the last survey: its reference, the id of the device that it is reported as, and NVML
/// indices and ids of its MIG devices.
#[derive(Debug)]
pub(super) struct KnownCard {
    pub(super) at: CardRef,
    pub(super) id: DeviceId,
    parts: Vec<(u32, DeviceId)>,
}

// === impl KnownCard ===

impl KnownCard {
    pub(super) fn from_card(card: &SurveyedCard, merged: Option<&DeviceId>) -> Self {
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
    pub(super) fn check_up(
        &self,
        session: &NvmlSession,
        tier: Tier,
        links: Option<&CallTable>,
        join_limit: Duration,
    ) -> Vec<Checkup> {
        let checkup = |device: &DeviceId, reading: Reading| Checkup {
            device: device.clone(),
            reading,
        };
        let card = match card_handle(session, self.at) {
            Ok(card) => card,
            Err(error) => {
                let reading = checks::refused_reading(&error, tier).into_iter();
                return reading.map(|reading| checkup(&self.id, reading)).collect();
            }
        };
        let whole = checks::check_card(card, tier, links, join_limit);
        let whole = whole.map(|reading| checkup(&self.id, reading));
        let parts = self.parts.iter().filter_map(|(place, id)| {
            let part = card.mig_device(*place).ok()?;
            Some(checkup(id, checks::check_partition(part, tier)?))
        });
        whole.into_iter().chain(parts).collect()
    }

    /// Reads the samples of the card and its MIG devices; with processes if `files` is given, from
    /// which their names are read.
    pub(super) fn read_samples(
        &self,
        session: &NvmlSession,
        files: Option<&HostFiles>,
    ) -> Vec<Sample> {
        let read = card_handle(session, self.at)
            .ok()
            .and_then(|card| Some((card, sensors::read_card_telemetry(card, files)?)));
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
pub(super) fn watched(card: &SurveyedCard, merged: Option<&DeviceId>) -> WatchedCard {
    let number = |device: &Device, name| {
        let value = device.attributes.get(&name)?.as_int()?;
        u32::try_from(value).ok()
    };
    let part = |device: &Device| {
        let gpu = number(device, nvidia_rules::names::GPU_INSTANCE)?;
        let compute = number(device, nvidia_rules::names::COMPUTE_INSTANCE)?;
        Some((gpu, compute, device.id.clone()))
    };
    WatchedCard {
        at: card.at,
        id: merged.unwrap_or(&card.devices[0].id).clone(),
        partitions: card.devices.iter().filter_map(part).collect(),
    }
}
