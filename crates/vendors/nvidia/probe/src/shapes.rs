//! MIG devices that are possible on a card, by the GPU instance profiles of NVML's list.

use std::borrow::Cow;

use model::{Shape, Span};
use nvml::{Attributes, Code, Error, Placement};

use super::profile;

/// GPU instance profiles of one card.
///
/// NVML promises that they are the same as long as the MIG mode is, so that each is asked for once.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// The MIG mode in which they were read.
    pub(super) partitioned: bool,
    /// The number in NVML's list that is asked for next.
    next: u32,
    offers: Vec<Offer>,
}

/// A GPU instance profile that the card has.
#[derive(Debug)]
struct Offer {
    profile: nvml::Profile,
    /// The end of its name: `+me`, or nothing.
    suffix: Cow<'static, str>,
    /// `None` as long as they are not asked for.
    placements: Option<Vec<Span>>,
}

// === impl Catalogue ===

impl Catalogue {
    /// An empty one, for a card in this MIG mode.
    pub(super) fn new(partitioned: bool) -> Self {
        Self {
            partitioned,
            next: 0,
            offers: Vec::new(),
        }
    }

    /// Asks for everything that is not known yet. Costs no call where everything is, and otherwise one
    /// for each number of NVML's list and two for each profile of the card.
    ///
    /// # Errors
    /// The driver fails to answer. The next call goes on where this one stopped.
    pub(super) fn complete(&mut self, card: nvml::Device<'_>) -> Result<(), Error> {
        while self.next < nvml::Device::SHAPES {
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

    /// The shapes, named as MIG devices of a card with that much memory are.
    pub(super) fn shapes(&self, card_bytes: Option<u64>) -> Vec<Shape> {
        let shape = |offer: &Offer| Shape {
            profile: profile::name(profile::Shape {
                size: Attributes {
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

    /// The suffix of the profile with an id, where the card has it.
    pub(super) fn suffix(&self, id: u32) -> Option<&str> {
        let offer = self.offers.iter().find(|offer| offer.profile.id == id);
        offer.map(|offer| &*offer.suffix)
    }
}

/// The profile with a number of NVML's list; `None` where the card has none or its name is not known.
fn read_offer(card: nvml::Device<'_>, number: u32) -> Result<Option<Offer>, Error> {
    let profile = told(card.gpu_instance_profile(number))?.flatten();
    let Some(profile) = profile else {
        return Ok(None);
    };
    let suffix = match profile::suffix(number) {
        Some(suffix) => Some(Cow::Borrowed(suffix)),
        // Newer than this table: the driver's own name tells, where the driver gives one.
        None => {
            let shape = told(card.shape(number))?;
            shape.map(|shape| profile::suffix_of(&shape.name).to_owned().into())
        }
    };
    Ok(suffix.map(|suffix| Offer {
        profile,
        suffix,
        placements: None,
    }))
}

/// The placements of a profile; none where the driver does not tell them.
fn read_placements(card: nvml::Device<'_>, id: u32) -> Result<Vec<Span>, Error> {
    let span = |Placement { start, size }| Span { start, size };
    let places = told(card.places(id))?.unwrap_or_default();
    Ok(places.into_iter().map(span).collect())
}

/// The answer; `None` where this driver does not give it to this process, which is no fault of the
/// card: placements are for privileged users only.
fn told<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_not_supported() => Ok(None),
        Err(error) if error.code() == Some(Code::NO_PERMISSION) => Ok(None),
        Err(error) => Err(error),
    }
}
