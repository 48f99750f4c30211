//! Reads one card and the MIG devices on it.

use std::collections::BTreeMap;

use model::{
    Attributes, CallFailure, Capacities, CardRef, Device, DeviceId, Driver, Index, Kind,
    PciAddress, Value, Version, names,
};
use nvml::Error;

use super::{
    constants::read_constants,
    nodes::{self, MigInstance, NodeFinder},
    profile::{self, ProfileParts},
    shapes::ProfileCatalogue,
};

/// Product names of cards that only drive a screen of a DGX Station. NVIDIA's device plugin skips
/// them by the same names.
const DISPLAYS: [&str; 2] = ["DGX Display", "NVIDIA DGX Display"];

/// Reads cards, and keeps the facts that never change.
#[derive(Debug)]
pub(super) struct CardReader {
    nodes: NodeFinder,
    /// Driver from which the other facts were read.
    driver: Option<Driver>,
    /// Architecture and brand, by id of the card.
    constants: BTreeMap<DeviceId, Attributes>,
    /// GPU instance profiles of the cards that support MIG, by id of the card.
    catalogues: BTreeMap<DeviceId, ProfileCatalogue>,
}

/// Facts about a card that the PCI bus tells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusFacts {
    /// PCI address; `None` for a card that was found by index.
    pub(super) address: Option<PciAddress>,
    /// NUMA node of the card, if known.
    pub(super) numa: Option<u32>,
}

/// Facts read about a card and its MIG devices.
#[derive(Debug)]
pub(super) struct SurveyedCard {
    /// Reference by which NVML gives its handle.
    pub(super) at: CardRef,
    /// The card, then its MIG devices.
    pub(super) devices: Vec<Device>,
    /// NVML's indices of the MIG devices, in the same order.
    pub(super) places: Vec<u32>,
}

/// Calls the driver about one device and collects the failures. Makes no call after one that says
/// the device is gone.
#[derive(Debug, Default)]
struct DeviceQueries {
    failures: Vec<CallFailure>,
}

// === impl SurveyedCard ===

impl SurveyedCard {
    /// Sets the NUMA node of the card and of its MIG devices.
    pub(super) fn set_numa(&mut self, node: Option<u32>) {
        for device in &mut self.devices {
            device.numa = node;
        }
    }
}

// === impl CardReader ===

impl CardReader {
    pub(super) fn new(nodes: NodeFinder) -> Self {
        Self {
            nodes,
            driver: None,
            constants: BTreeMap::new(),
            catalogues: BTreeMap::new(),
        }
    }

    /// Drops the facts that were read from another driver, or from an earlier loading of this one.
    pub(super) fn note_driver(&mut self, driver: &Driver) {
        if self.driver.as_ref() != Some(driver) {
            self.driver = Some(driver.clone());
            self.constants.clear();
            self.catalogues.clear();
        }
    }

    /// Reads a card with its MIG devices; `None` for a card that is not for computing.
    ///
    /// # Errors
    /// The card does not tell its UUID. Every other call may fail: the failure is part of the card.
    pub(super) fn read_card(
        &mut self,
        card: nvml::DeviceHandle<'_>,
        seat: BusFacts,
    ) -> Result<Option<SurveyedCard>, CallFailure> {
        let id = read_card_id(card)?;
        let mut interview = DeviceQueries::default();
        let model = interview.query(|| card.read_name());
        if model
            .as_deref()
            .is_some_and(|name| DISPLAYS.contains(&name))
        {
            return Ok(None);
        }
        // From here on only the fact of the call that fails is lost. Unified-memory parts such as
        // GB10 do not support the memory query (NVIDIA/k8s-device-plugin issue 1482).
        let minor = interview.query(|| card.read_minor());
        let mut device = Device {
            vendor: "nvidia".to_owned(),
            kind: Kind::Card { partitioned: false },
            index: interview.query(|| card.index()).map(Index::of_card),
            pci: seat
                .address
                .or_else(|| interview.query(|| card.read_pci_address()).flatten()),
            numa: seat.numa,
            attributes: self.constants(card, &id),
            capacity: Capacities::new(),
            nodes: self.nodes.find_card_nodes(card.handle_card(), minor),
            links: Vec::new(),
            shapes: Vec::new(),
            failures: Vec::new(),
            id,
        };
        add_card_facts(card, model, &mut device, &mut interview);
        let mode = interview.query(|| card.mig_enabled());
        let partitioned = mode.unwrap_or(false);
        device.kind = Kind::Card { partitioned };
        if mode.is_some() {
            self.add_shapes(card, &mut device, partitioned, &mut interview);
        }
        let mut found = SurveyedCard {
            at: card.handle_card(),
            devices: vec![device],
            places: Vec::new(),
        };
        if partitioned {
            self.partitions(card, minor, &mut found, &mut interview);
        }
        interview.finish_card(minor, &mut found.devices[0]);
        Ok(Some(found))
    }

    /// Reads architecture and brand, once for each card because they never change.
    fn constants(&mut self, card: nvml::DeviceHandle<'_>, id: &DeviceId) -> Attributes {
        if let Some(known) = self.constants.get(id) {
            return known.clone();
        }
        let read = read_constants(card).ok();
        if let Some(read) = &read {
            self.constants.insert(id.clone(), read.clone());
        }
        read.unwrap_or_default()
    }

    /// Adds the shapes of a card that supports MIG. They are read once. If a call fails, the card
    /// has none of them until a later survey succeeds.
    fn add_shapes(
        &mut self,
        card: nvml::DeviceHandle<'_>,
        device: &mut Device,
        partitioned: bool,
        interview: &mut DeviceQueries,
    ) {
        let entry = self.catalogues.entry(device.id.clone());
        let known = entry.or_insert_with(|| ProfileCatalogue::new(partitioned));
        if known.partitioned != partitioned {
            *known = ProfileCatalogue::new(partitioned);
        }
        if interview.query(|| known.complete_profiles(card)).is_some() {
            device.shapes = known.to_shapes(device.memory_bytes());
        }
    }

    /// Adds the card's MIG devices. If one of them cannot be read, that is a failure of the card.
    fn partitions(
        &mut self,
        card: nvml::DeviceHandle<'_>,
        minor: Option<u32>,
        found: &mut SurveyedCard,
        interview: &mut DeviceQueries,
    ) {
        let places = interview.query(|| card.mig_places()).unwrap_or(0);
        for place in 0..places {
            let part = match card.mig_device(place) {
                Ok(part) => part,
                Err(error) if is_empty(&error) => continue,
                Err(error) => {
                    interview.add_failure(&error);
                    continue;
                }
            };
            match self.read_partition(card, part, minor, &found.devices[0]) {
                Ok(mut device) => {
                    let card = found.devices[0].index;
                    device.index = card.map(|card| card.with_part(place));
                    if found.devices.iter().all(|other| other.id != device.id) {
                        found.devices.push(device);
                        found.places.push(place);
                    }
                }
                // nvmlDeviceGetMigDeviceHandleByIndex has returned instances that were just deleted
                // (libcudacxx issue 224).
                Err(error) if is_empty(&error) => {}
                Err(error) => interview.add_failure(&error),
            }
        }
    }

    /// Reads one MIG device. Attributes, links and NUMA node are its card's.
    ///
    /// # Errors
    /// The MIG device does not tell its UUID or its instances.
    fn read_partition(
        &mut self,
        card: nvml::DeviceHandle<'_>,
        part: nvml::DeviceHandle<'_>,
        minor: Option<u32>,
        parent: &Device,
    ) -> Result<Device, Error> {
        let id = DeviceId::new(part.read_uuid()?);
        let gpu_instance = part.gpu_instance()?;
        let compute_instance = part.compute_instance()?;
        let mut interview = DeviceQueries::default();
        let profile = self.read_profile_name(card, part, gpu_instance, parent, &mut interview);
        let memory = interview
            .query(|| part.read_memory())
            .map(|memory| memory.total);
        let mut nodes = parent.nodes.clone();
        if let Some(card) = minor {
            nodes.extend(self.nodes.capabilities(
                part.handle_card(),
                MigInstance {
                    card,
                    gpu: gpu_instance,
                    compute: compute_instance,
                },
            ));
        }
        Ok(Device {
            id,
            kind: Kind::Partition {
                parent: parent.id.clone(),
                profile,
            },
            index: None,
            capacity: memory
                .map(|bytes| (names::MEMORY, bytes))
                .into_iter()
                .collect(),
            nodes,
            links: Vec::new(),
            shapes: Vec::new(),
            failures: interview.failures,
            ..parent
                .clone()
                .with_attribute(nvidia_rules::names::GPU_INSTANCE, gpu_instance)
                .with_attribute(nvidia_rules::names::COMPUTE_INSTANCE, compute_instance)
        })
    }

    /// Returns the profile name of a MIG device, if known: made from its size, or else taken from
    /// NVML's device name.
    fn read_profile_name(
        &self,
        card: nvml::DeviceHandle<'_>,
        part: nvml::DeviceHandle<'_>,
        instance: u32,
        parent: &Device,
        interview: &mut DeviceQueries,
    ) -> Option<String> {
        let size = interview.query(|| part.read_mig_attributes());
        let id = interview.query(|| card.gpu_instance_profile_id(instance));
        let catalogue = self.catalogues.get(&parent.id);
        let known = id.zip(catalogue);
        let known = known.and_then(|(id, catalogue)| catalogue.suffix_of_profile(id));
        if let (Some(size), Some(suffix)) = (size, known) {
            return Some(profile::format_profile(ProfileParts {
                size,
                card_bytes: parent.memory_bytes(),
                suffix,
            }));
        }
        let written = interview.query(|| part.read_name());
        let written = written.as_deref().and_then(profile::from_device_name);
        match (size, written) {
            (Some(size), written) => Some(profile::format_profile(ProfileParts {
                size,
                card_bytes: parent.memory_bytes(),
                suffix: written.map_or("", profile::suffix_of),
            })),
            (None, written) => written.map(str::to_owned),
        }
    }
}

// === impl DeviceQueries ===

impl DeviceQueries {
    /// Makes a call; `None` if the device does not support it, it failed, or the device is gone.
    fn query<T>(&mut self, question: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        if self.is_over() {
            return None;
        }
        question().map_err(|error| self.add_failure(&error)).ok()
    }

    /// Moves the failures into the card, with one for a missing device node.
    fn finish_card(mut self, minor: Option<u32>, card: &mut Device) {
        // Last, because this failure is fatal and would prevent further calls. A card that is gone
        // needs no node.
        if !self.is_over() {
            self.failures.extend(nodes::unusable(minor, &card.nodes));
        }
        card.failures = self.failures;
    }

    /// Returns true if a failure says that the device is gone.
    fn is_over(&self) -> bool {
        self.failures.iter().any(|failure| failure.fatal)
    }

    /// Adds a failure, unless the device only does not support the call.
    fn add_failure(&mut self, error: &Error) {
        let failure = call_failure(error);
        if !error.is_not_supported() && !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }
}

/// Reads memory, compute capability and the other facts of a card into `device`.
fn add_card_facts(
    card: nvml::DeviceHandle<'_>,
    product: Option<String>,
    device: &mut Device,
    interview: &mut DeviceQueries,
) {
    let memory = interview
        .query(|| card.read_memory())
        .map(|memory| memory.total);
    device
        .capacity
        .extend(memory.map(|bytes| (names::MEMORY, bytes)));
    let capability = interview.query(|| card.compute_capability());
    let capability = capability.and_then(|(major, minor)| {
        let version = Version::of_two(major.try_into().ok()?, minor.try_into().ok()?);
        Some(Value::from(version))
    });
    // These two facts are optional: a card that fails to tell them is not suspect.
    let display = interview.query(|| Ok(card.has_display().ok())).flatten();
    let coherent = interview.query(|| Ok(card.is_coherent().ok())).flatten();
    let facts = [
        (names::PRODUCT, product.map(Value::from)),
        (nvidia_rules::names::COMPUTE_CAPABILITY, capability),
        (names::DISPLAY, display.map(Value::from)),
        (names::COHERENT, coherent.map(Value::from)),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    device.attributes.extend(known);
}

/// Reads the UUID of a card. An empty UUID is a failure.
fn read_card_id(card: nvml::DeviceHandle<'_>) -> Result<DeviceId, CallFailure> {
    let uuid = card.read_uuid().map_err(|error| call_failure(&error))?;
    if uuid.is_empty() {
        return Err(CallFailure {
            call: "nvmlDeviceGetUUID".to_owned(),
            code: "NO_DATA".to_owned(),
            fatal: false,
        });
    }
    Ok(DeviceId::new(uuid))
}

/// Converts a driver error into a failure for the report.
pub(super) fn call_failure(error: &Error) -> CallFailure {
    CallFailure {
        call: error.call_name().to_owned(),
        code: error.code_name(),
        fatal: error.is_fatal(),
    }
}

/// Returns true if the error only says that there is no MIG device at an index.
fn is_empty(error: &Error) -> bool {
    error.is_not_found() || error.is_not_supported()
}
