//! Reset of cards before a container starts: all driver handles are closed, the cards are reset, the
//! probe opens them again, and new samples must find them healthy. The kubelet sees no change of
//! their health meanwhile.

use std::collections::BTreeMap;

use inventory::{DeviceChange, release};
use model::{CauseKind, Device, DeviceId};
use pool::Offer;
use probe::supervisor::{BackendRelease, OrdersByBackend, ReleaseScope};
use tokio::time::{Instant, sleep_until};

use crate::{
    Preparer,
    command::CommandCall,
    look::computes,
    preparer::{DeviceInUse, soon},
};

const IN_HAND: &str = "an operator has it; `ostler resume` takes it back";

/// Cards that the agent has released for a short time. A drop ends the release, except for cards that
/// an operator has released meanwhile.
#[derive(Debug)]
struct ShortRelease {
    orders: OrdersByBackend,
    cards: Vec<BackendRelease>,
}

// === impl Preparer ===

impl Preparer {
    /// Resets the devices and waits until they are healthy again. A device in use is not reset: the
    /// error is the reason.
    pub(super) async fn reset_devices(
        &self,
        offer: &Offer,
        devices: &[&Device],
        deadline: Instant,
    ) -> Result<(), DeviceInUse> {
        let [first, ..] = devices else {
            return Ok(());
        };
        let cards = self.find_cards(devices)?;
        if !self.check_idle(devices, deadline).await? {
            let why = "it is not reset: no probe looked at it in time, so nobody knows whether it is \
                       in use";
            return Err(DeviceInUse::new(first, why));
        }
        // A reset fails while any process has the card open, the agent's own probe too.
        let lent = self.release_cards(&cards, deadline)?;
        let limit = deadline.min(Instant::now() + release::CLOSED_WITHIN);
        let closed = release::closed(&self.readers, &lent.cards, limit).await;
        closed.map_err(|calls| {
            let why = format!(
                "it cannot be reset: after {:?} a probe process still holds driver handles{calls}",
                release::CLOSED_WITHIN
            );
            DeviceInUse::new(first, why)
        })?;
        let rule = &offer.pool.pre_start;
        // A quarter of the time is kept for the samples after the reset.
        let limit = deadline - rule.limit / 4;
        match rule.command.is_empty() {
            true => {
                let ended = self.run_usual(offer, devices, limit).await;
                ended.map_err(|why| DeviceInUse::new(first, why))?;
            }
            false => self.run_user_command(offer, devices, limit).await?,
        }
        let ids: Vec<DeviceId> = devices.iter().map(|device| device.id.clone()).collect();
        let devices = ids.clone();
        self.requests
            .request_change(DeviceChange::Reset { devices })
            .await;
        drop(lent);
        self.back(&ids, deadline).await?;
        self.check_free(&ids)
    }

    /// Checks that no process computes on the devices. Returns true if new samples said so, false if only
    /// old ones did.
    async fn check_idle(
        &self,
        devices: &[&Device],
        deadline: Instant,
    ) -> Result<bool, DeviceInUse> {
        // Memory in use without a visible process does not prevent the reset: to free it is the purpose
        // of the reset. If a process still has the card open, the reset command refuses.
        let ids: Vec<DeviceId> = devices.iter().map(|device| device.id.clone()).collect();
        let fresh = self.wait_for_samples(&ids, soon(deadline)).await;
        let samples = self.readers.samples.borrow();
        for device in devices {
            if let Some(why) = samples.telemetry(&device.id).and_then(computes) {
                return Err(DeviceInUse::new(device, why));
            }
        }
        Ok(fresh)
    }

    /// Finds the card to release for each device. A device that an operator has released is an error.
    fn find_cards<'d>(
        &self,
        devices: &[&'d Device],
    ) -> Result<Vec<(&'d Device, ReleaseScope)>, DeviceInUse> {
        let card = |device: &&'d Device| {
            let card = device.card_ref().map(ReleaseScope::Card).ok_or_else(|| {
                let why = "it cannot be reset: it has neither a PCI address nor an index";
                DeviceInUse::new(device, why)
            })?;
            match self
                .orders
                .orders_of(&device.vendor)
                .is_release_ordered(card)
            {
                true => Err(DeviceInUse::new(device, IN_HAND)),
                false => Ok((*device, card)),
            }
        };
        devices.iter().map(card).collect()
    }

    /// Releases the cards, all or none.
    fn release_cards(
        &self,
        cards: &[(&Device, ReleaseScope)],
        deadline: Instant,
    ) -> Result<ShortRelease, DeviceInUse> {
        let orders = self.orders.clone();
        let left = deadline.duration_since(Instant::now());
        let mut lent = ShortRelease {
            orders,
            cards: Vec::new(),
        };
        for (device, which) in cards {
            let given = lent.orders.release_to_agent(&device.vendor, *which, left);
            let given = given.ok_or_else(|| DeviceInUse::new(device, IN_HAND))?;
            lent.cards.push(given);
        }
        Ok(lent)
    }

    /// Runs the reset command of each vendor, once for all of its devices.
    async fn run_usual(
        &self,
        offer: &Offer,
        devices: &[&Device],
        deadline: Instant,
    ) -> Result<(), String> {
        let mut by_vendor: BTreeMap<&str, Vec<&Device>> = BTreeMap::new();
        for device in devices {
            by_vendor.entry(&device.vendor).or_default().push(device);
        }
        let commands = by_vendor.into_iter().map(|(vendor, devices)| {
            let command = offer.vendors.find_rules(vendor).reset_command(&devices);
            command.ok_or_else(|| {
                format!(
                    "no command is known that resets devices of the vendor `{vendor}`; name one with \
                     `preStartCommand`"
                )
            })
        });
        // An unknown vendor is an error before the first reset, not after some.
        let commands: Vec<Vec<String>> = commands.collect::<Result<_, _>>()?;
        for command in commands {
            let call = CommandCall {
                command: &command,
                about: Vec::new(),
            };
            let ended = self.run_command(&call, deadline).await;
            ended.map_err(|why| format!("{why}; `preStartCommand` can name another command"))?;
        }
        Ok(())
    }

    /// Waits until every device is healthy by new samples. Only samples that began after the end of the
    /// release count. At the deadline the error is the first device that is not back.
    async fn back(&self, ids: &[DeviceId], deadline: Instant) -> Result<(), DeviceInUse> {
        let since = self.readers.samples.borrow().sample_count();
        let mut snapshots = self.readers.snapshots.clone();
        let mut samples = self.readers.samples.clone();
        loop {
            let missing = ids.iter().find_map(|id| self.absence(id, since));
            let Some(taken) = missing else {
                return Ok(());
            };
            tokio::select! {
                Ok(()) = snapshots.changed() => {}
                Ok(()) = samples.changed() => {}
                () = sleep_until(deadline) => return Err(taken),
            }
        }
    }

    /// Reason why a device is not back; `None` if it is.
    fn absence(&self, id: &DeviceId, since: u64) -> Option<DeviceInUse> {
        let taken = |why: &str| {
            Some(DeviceInUse {
                device: id.clone(),
                why: format!("it was reset, and {why}"),
            })
        };
        let is_sampled = self.readers.samples.borrow().is_newer(id, since);
        let snapshot = self.readers.snapshots.borrow();
        let Some(entry) = snapshot.find_entry(id.as_str()) else {
            return taken("it is gone");
        };
        // A cordon does not take a card away from the pod that has it already. `Residue` is the reason
        // for this reset, and ends after it.
        let other = |kind| !matches!(kind, CauseKind::Cordoned | CauseKind::Residue);
        let mut causes = entry.verdict.causes.iter();
        if let Some(cause) = causes.find(|cause| other(cause.kind)) {
            return taken(&format!(
                "it is {}: {}",
                entry.verdict.state, cause.evidence
            ));
        }
        match is_sampled {
            true => None,
            false => taken("no probe has looked at it since"),
        }
    }
}

// === impl ShortRelease ===

impl Drop for ShortRelease {
    fn drop(&mut self) {
        for given in &self.cards {
            self.orders.take_back(given);
        }
    }
}
