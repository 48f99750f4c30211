//! MIG devices that are possible on a card, by the GPU instance profiles of NVML's list.

use std::borrow::Cow;

use model::{Shape, Span};
use nvml::{Error, InstancePlacement, MigAttributes, ReturnCode};

use super::profile;

/// GPU instance profiles of one card. Each is read once: NVML promises the same answers as long as
/// the MIG mode is the same.
#[derive(Debug)]
pub(super) struct ProfileCatalogue {
    /// MIG mode in which the profiles were read.
    pub(super) partitioned: bool,
    /// Next number in NVML's list to ask for.
    next: u32,
    offers: Vec<CardProfile>,
}

/// GPU instance profile that the card supports.
#[derive(Debug)]
struct CardProfile {
    profile: nvml::InstanceProfile,
    /// Suffix of its name: `+me`, or empty.
    suffix: Cow<'static, str>,
    /// Possible placements; `None` until they are read.
    placements: Option<Vec<Span>>,
}

// === impl ProfileCatalogue ===

impl ProfileCatalogue {
    /// Creates an empty catalogue for a card in this MIG mode.
    pub(super) fn new(partitioned: bool) -> Self {
        Self {
            partitioned,
            next: 0,
            offers: Vec::new(),
        }
    }

    /// Reads everything that is not known yet. Makes no call if everything is known, or else one
    /// for each number of NVML's list and two for each profile of the card.
    ///
    /// # Errors
    /// The driver fails to answer. The next call continues where this one stopped.
    pub(super) fn complete_profiles(&mut self, card: nvml::DeviceHandle<'_>) -> Result<(), Error> {
        while self.next < nvml::DeviceHandle::SHAPES {
            self.offers.extend(read_offer(card, self.next)?);
            self.next += 1;
        }
        for offer in &mut self.offers {
            if offer.placements.is_none() {
                offer.placements = Some(read_placements(card, offer.profile.id)?);
            }
        }
        Ok(())
    }

    /// Returns the shapes, named for a card with this much memory.
    pub(super) fn to_shapes(&self, card_bytes: Option<u64>) -> Vec<Shape> {
        let shape = |offer: &CardProfile| Shape {
            profile: profile::format_profile(profile::ProfileParts {
                size: MigAttributes {
                    gpu_slices: offer.profile.slices,
                    compute_slices: offer.profile.slices,
                    memory_mib: offer.profile.memory_mib,
                },
                card_bytes,
                suffix: &offer.suffix,
            }),
            most: offer.profile.count,
            memory: offer.profile.memory_mib.checked_mul(1 << 20),
            placements: offer.placements.clone().unwrap_or_default(),
        };
        self.offers.iter().map(shape).collect()
    }

    /// Returns the suffix of the profile with an id; `None` if the card does not have it.
    pub(super) fn suffix_of_profile(&self, id: u32) -> Option<&str> {
        let offer = self.offers.iter().find(|offer| offer.profile.id == id);
        offer.map(|offer| &*offer.suffix)
    }
}

/// Reads the profile with a number of NVML's list; `None` if the card does not have it or its name
/// is not known.
fn read_offer(card: nvml::DeviceHandle<'_>, number: u32) -> Result<Option<CardProfile>, Error> {
    let profile = permitted_answer(card.gpu_instance_profile(number))?.flatten();
    let Some(profile) = profile else {
        return Ok(None);
    };
    let suffix = match profile::known_suffix(number) {
        Some(suffix) => Some(Cow::Borrowed(suffix)),
        // The number is newer than the table here. Only NVML's own name of the profile can tell the
        // suffix, and old drivers have none.
        None => {
            let shape = permitted_answer(card.read_instance_shape(number))?;
            shape.map(|shape| profile::suffix_of(&shape.name).to_owned().into())
        }
    };
    Ok(suffix.map(|suffix| CardProfile {
        profile,
        suffix,
        placements: None,
    }))
}

/// Reads the placements of a profile; empty if the driver does not tell them.
fn read_placements(card: nvml::DeviceHandle<'_>, id: u32) -> Result<Vec<Span>, Error> {
    let span = |InstancePlacement { start, size }| Span { start, size };
    let places = permitted_answer(card.list_placements(id))?.unwrap_or_default();
    Ok(places.into_iter().map(span).collect())
}

/// Converts "not supported" and "no permission" into `None`. They are not failures of the card:
/// NVML tells placements to privileged users only.
fn permitted_answer<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_supported() => Ok(None),
        Err(error) if error.return_code() == Some(ReturnCode::NO_PERMISSION) => Ok(None),
        Err(error) => Err(error),
    }
}
