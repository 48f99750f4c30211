//! What the driver says of one card and of the MIG devices on it.

use std::collections::BTreeMap;

use model::{
    Attributes, CallFailure, Capacity, CardRef, Device, DeviceId, Driver, Index, Kind, PciAddress,
    Value, Version, names,
};
use nvml::Error;

use super::{
    constants::read_constants,
    nodes::{self, Instance, Nodes},
    profile::{self, Shape},
    shapes::Catalogue,
};

/// Cards that only drive a screen of a DGX Station.
const DISPLAYS: [&str; 2] = ["DGX Display", "NVIDIA DGX Display"];

/// Reads cards, and keeps what never changes.
#[derive(Debug)]
pub(super) struct Reader {
    nodes: Nodes,
    /// The driver that the rest was read from.
    driver: Option<Driver>,
    /// By id: what never changes of a card.
    constants: BTreeMap<DeviceId, Attributes>,
    /// By id: the profiles of a card that supports MIG.
    catalogues: BTreeMap<DeviceId, Catalogue>,
}

/// What the bus says of a card.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    /// Where it sits.
    pub(super) address: Option<PciAddress>,
    /// Its NUMA node.
    pub(super) numa: Option<u32>,
}

/// A card with its MIG devices.
#[derive(Debug)]
pub(super) struct Card {
    /// Where its handle is found.
    pub(super) at: CardRef,
    /// The card first, then its MIG devices.
    pub(super) devices: Vec<Device>,
    /// The places of the MIG devices, in the same order.
    pub(super) places: Vec<u32>,
}

/// Asks questions about one device and writes the failures down. Nothing more is asked of a
/// device that is gone.
#[derive(Debug, Default)]
struct Interview {
    failures: Vec<CallFailure>,
}

// === impl Card ===

impl Card {
    /// Sets the NUMA node of the card and so of its MIG devices.
    pub(super) fn set_numa(&mut self, node: Option<u32>) {
        for device in &mut self.devices {
            device.numa = node;
        }
    }
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(nodes: Nodes) -> Self {
        Self {
            nodes,
            driver: None,
            constants: BTreeMap::new(),
            catalogues: BTreeMap::new(),
        }
    }

    /// Forgets what was read from another driver, or from an earlier loading of this one.
    pub(super) fn note_driver(&mut self, driver: &Driver) {
        if self.driver.as_ref() != Some(driver) {
            self.driver = Some(driver.clone());
            self.constants.clear();
            self.catalogues.clear();
        }
    }

    /// The card with its MIG devices; `None` for one that is not for computing.
    ///
    /// # Errors
    /// The card does not tell who it is.
    pub(super) fn read(
        &mut self,
        card: nvml::Device<'_>,
        seat: Seat,
    ) -> Result<Option<Card>, CallFailure> {
        let id = identity(card)?;
        let mut interview = Interview::default();
        let model = interview.ask(|| card.name());
        if model
            .as_deref()
            .is_some_and(|name| DISPLAYS.contains(&name))
        {
            return Ok(None);
        }
        let minor = interview.ask(|| card.minor());
        let mut device = Device {
            vendor: "nvidia".to_owned(),
            kind: Kind::Card { partitioned: false },
            index: interview.ask(|| card.index()).map(Index::of_card),
            pci: seat
                .address
                .or_else(|| interview.ask(|| card.pci()).flatten()),
            numa: seat.numa,
            attributes: self.constants(card, &id),
            capacity: Capacity::new(),
            nodes: self.nodes.card(card.at(), minor),
            links: Vec::new(),
            shapes: Vec::new(),
            failures: Vec::new(),
            id,
        };
        describe(card, model, &mut device, &mut interview);
        let mode = interview.ask(|| card.mig_enabled());
        let partitioned = mode.unwrap_or(false);
        device.kind = Kind::Card { partitioned };
        if mode.is_some() {
            self.add_shapes(card, &mut device, partitioned, &mut interview);
        }
        let mut found = Card {
            at: card.at(),
            devices: vec![device],
            places: Vec::new(),
        };
        if partitioned {
            self.partitions(card, minor, &mut found, &mut interview);
        }
        interview.conclude(minor, &mut found.devices[0]);
        Ok(Some(found))
    }

    /// Architecture and brand. They never change, and are asked for once.
    fn constants(&mut self, card: nvml::Device<'_>, id: &DeviceId) -> Attributes {
        if let Some(known) = self.constants.get(id) {
            return known.clone();
        }
        let read = read_constants(card).ok();
        if let Some(read) = &read {
            self.constants.insert(id.clone(), read.clone());
        }
        read.unwrap_or_default()
    }

    /// Adds the MIG devices that are possible on a card that supports MIG. They are asked for once; a
    /// call that fails costs all of them, until it succeeds in a later look.
    fn add_shapes(
        &mut self,
        card: nvml::Device<'_>,
        device: &mut Device,
        partitioned: bool,
        interview: &mut Interview,
    ) {
        let entry = self.catalogues.entry(device.id.clone());
        let known = entry.or_insert_with(|| Catalogue::new(partitioned));
        if known.partitioned != partitioned {
            *known = Catalogue::new(partitioned);
        }
        if interview.ask(|| known.complete(card)).is_some() {
            device.shapes = known.shapes(device.memory());
        }
    }

    /// Adds the card's MIG devices. One that cannot be read is a failure of the card.
    fn partitions(
        &mut self,
        card: nvml::Device<'_>,
        minor: Option<u32>,
        found: &mut Card,
        interview: &mut Interview,
    ) {
        let places = interview.ask(|| card.mig_places()).unwrap_or(0);
        for place in 0..places {
            let part = match card.mig_device(place) {
                Ok(part) => part,
                Err(error) if is_empty(&error) => continue,
                Err(error) => {
                    interview.note(&error);
                    continue;
                }
            };
            match self.partition(card, part, minor, &found.devices[0]) {
                Ok(mut device) => {
                    let card = found.devices[0].index;
                    device.index = card.map(|card| card.part(place));
                    if found.devices.iter().all(|other| other.id != device.id) {
                        found.devices.push(device);
                        found.places.push(place);
                    }
                }
                // Drivers have handed out instances that were deleted a moment ago.
                Err(error) if is_empty(&error) => {}
                Err(error) => interview.note(&error),
            }
        }
    }

    fn partition(
        &mut self,
        card: nvml::Device<'_>,
        part: nvml::Device<'_>,
        minor: Option<u32>,
        parent: &Device,
    ) -> Result<Device, Error> {
        let id = DeviceId::new(part.uuid()?);
        let gpu_instance = part.gpu_instance()?;
        let compute_instance = part.compute_instance()?;
        let mut interview = Interview::default();
        let profile = self.profile(card, part, gpu_instance, parent, &mut interview);
        let memory = interview.ask(|| part.memory()).map(|memory| memory.total);
        let mut nodes = parent.nodes.clone();
        if let Some(card) = minor {
            nodes.extend(self.nodes.capabilities(
                part.at(),
                Instance {
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
                .with(nvidia_rules::names::GPU_INSTANCE, gpu_instance)
                .with(nvidia_rules::names::COMPUTE_INSTANCE, compute_instance)
        })
    }

    /// The name of a MIG device's shape, where it is known: by its size, else as the driver writes it.
    fn profile(
        &self,
        card: nvml::Device<'_>,
        part: nvml::Device<'_>,
        instance: u32,
        parent: &Device,
        interview: &mut Interview,
    ) -> Option<String> {
        let size = interview.ask(|| part.attributes());
        let id = interview.ask(|| card.gpu_instance_profile_id(instance));
        let catalogue = self.catalogues.get(&parent.id);
        let known = id.zip(catalogue);
        let known = known.and_then(|(id, catalogue)| catalogue.suffix(id));
        if let (Some(size), Some(suffix)) = (size, known) {
            return Some(profile::name(Shape {
                size,
                card_bytes: parent.memory(),
                suffix,
            }));
        }
        let written = interview.ask(|| part.name());
        let written = written.as_deref().and_then(profile::from_device_name);
        match (size, written) {
            (Some(size), written) => Some(profile::name(Shape {
                size,
                card_bytes: parent.memory(),
                suffix: written.map_or("", profile::suffix_of),
            })),
            (None, written) => written.map(str::to_owned),
        }
    }
}

// === impl Interview ===

impl Interview {
    /// The answer; `None` where the device does not support the question, failed to answer, or is
    /// known to be gone.
    fn ask<T>(&mut self, question: impl FnOnce() -> Result<T, Error>) -> Option<T> {
        if self.is_over() {
            return None;
        }
        question().map_err(|error| self.note(&error)).ok()
    }

    /// Writes the failures into the card, and what keeps it from being used.
    fn conclude(mut self, minor: Option<u32>, card: &mut Device) {
        // A card that is gone needs no node; asked for last, since it ends the interview.
        if !self.is_over() {
            self.failures.extend(nodes::unusable(minor, &card.nodes));
        }
        card.failures = self.failures;
    }

    fn is_over(&self) -> bool {
        self.failures.iter().any(|failure| failure.fatal)
    }

    fn note(&mut self, error: &Error) {
        let failure = failure(error);
        if !error.is_not_supported() && !self.failures.contains(&failure) {
            self.failures.push(failure);
        }
    }
}

/// Asks a card for the facts that make it what it is.
fn describe(
    card: nvml::Device<'_>,
    product: Option<String>,
    device: &mut Device,
    interview: &mut Interview,
) {
    let memory = interview.ask(|| card.memory()).map(|memory| memory.total);
    device
        .capacity
        .extend(memory.map(|bytes| (names::MEMORY, bytes)));
    let capability = interview.ask(|| card.compute_capability());
    let capability = capability.and_then(|(major, minor)| {
        let version = Version::of_two(major.try_into().ok()?, minor.try_into().ok()?);
        Some(Value::from(version))
    });
    // Nice to know, and no reason to doubt a card that does not tell.
    let display = interview.ask(|| Ok(card.has_display().ok())).flatten();
    let coherent = interview.ask(|| Ok(card.is_coherent().ok())).flatten();
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

/// The id of a card; an empty one is none.
fn identity(card: nvml::Device<'_>) -> Result<DeviceId, CallFailure> {
    let uuid = card.uuid().map_err(|error| failure(&error))?;
    if uuid.is_empty() {
        return Err(CallFailure {
            call: "nvmlDeviceGetUUID".to_owned(),
            code: "NO_DATA".to_owned(),
            fatal: false,
        });
    }
    Ok(DeviceId::new(uuid))
}

/// The failure that an error is.
pub(super) fn failure(error: &Error) -> CallFailure {
    CallFailure {
        call: error.call().to_owned(),
        code: error.code_name(),
        fatal: error.is_fatal(),
    }
}

/// Whether a place for a MIG device is just empty.
fn is_empty(error: &Error) -> bool {
    error.is_not_found() || error.is_not_supported()
}
