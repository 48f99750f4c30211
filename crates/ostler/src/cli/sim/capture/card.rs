//! Capture of one card.

use std::collections::BTreeMap;

use anyhow::Context;
use nvml::{DeviceHandle, Error};
use sim::{profile::ProfileCard, state::GpuModel};

use super::{Capture, make_slug};

impl Capture<'_> {
    /// Reads a card, and adds its model to `models`.
    ///
    /// # Errors
    /// The driver gives no PCI address, name or memory size.
    pub(super) fn capture_card(
        &mut self,
        device: DeviceHandle<'_>,
        position: usize,
        models: &mut BTreeMap<String, GpuModel>,
    ) -> anyhow::Result<ProfileCard> {
        let pci = device
            .read_pci_address()?
            .context("the driver gives it no PCI address")?
            .to_string()
            .parse()?;
        let model = self.capture_model(device, pci)?;
        let mig = self.capture_migs(device, &model);
        let key = add_model(models, model);
        let keep = self.keep_ids;
        let id = |fact: Result<String, Error>| keep.then_some(fact.ok()).flatten();
        let minor = device.read_minor().ok();
        let numa = self.host.numa_nodes();
        let own = device.memory_node().ok();
        let uuids = mig
            .as_ref()
            .map(|migs| migs.iter().map(|m| m.uuid.clone()).collect());
        Ok(ProfileCard {
            pci,
            under: self.host.bridge_path(pci, &mut self.notes),
            numa: self.host.numa_node(pci),
            memory_numa: own.filter(|own| numa.iter().any(|node| node.node == *own)),
            model: Some(key),
            uuid: id(device.read_uuid()),
            serial: id(device.serial()),
            // The minor number is the position on most machines; a profile has the exceptions only.
            minor: minor.filter(|minor| usize::try_from(*minor) != Ok(position)),
            group: 0,
            links: None,
            mig: mig.map(|migs| migs.into_iter().map(|mig| mig.name).collect()),
            mig_uuids: uuids.filter(|uuids: &Vec<_>| keep && !uuids.is_empty()),
        })
    }
}

/// Adds a model, and returns its key. Two cards have one model if they differ in their sensors only.
fn add_model(models: &mut BTreeMap<String, GpuModel>, model: GpuModel) -> String {
    let alike = |known: &GpuModel| {
        GpuModel {
            idle: known.idle.clone(),
            ..model.clone()
        } == *known
    };
    if let Some((key, _)) = models.iter().find(|(_, known)| alike(known)) {
        return key.clone();
    }
    let name = make_slug(&model.name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let free = names.find(|name| !models.contains_key(name));
    let key = free.unwrap_or(name);
    models.insert(key.clone(), model);
    key
}
