//! One look at all cards.

use std::{collections::BTreeSet, path::Path};

use model::{CallFailure, PciAddress, Unreadable};
use nvml::{Locator, Session};

use super::{
    bus::{self, Function},
    card::{self, Card, Reader, Seat},
};
use crate::protocol::{CardRef, Scope};

/// More cards than this are not counted: the number is nonsense.
const MOST_CARDS: u32 = 1024;

/// What a look gave.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Every card that could be read.
    pub(super) cards: Vec<Card>,
    /// Every card that could not.
    pub(super) unreadable: Vec<Unreadable>,
    /// Every card that was left out.
    pub(super) skipped: Vec<String>,
    /// Cards that are bound to the driver and that its library does not know.
    pub(super) strangers: BTreeSet<PciAddress>,
}

/// What is looked at, and how.
#[derive(Debug)]
pub(super) struct Looker<'a> {
    /// The open driver.
    pub(super) session: &'a Session,
    /// Reads the cards.
    pub(super) reader: &'a mut Reader,
    /// Which cards to look at.
    pub(super) scope: &'a Scope,
}

// === impl Looker ===

impl Looker<'_> {
    /// Looks at every card on the bus below `root`, or where there is no bus at every one that the
    /// driver counts.
    pub(super) fn look(mut self, root: &Path) -> Look {
        let functions = bus::scan(root);
        let mut look = Look::default();
        if functions.is_empty() {
            self.count(&mut look);
        }
        for function in functions.iter().filter(|f| f.may_be_managed()) {
            if self.leaves_out(CardRef::Pci(function.address)) {
                look.skipped.push(function.address.to_string());
            } else {
                self.function(function, &mut look);
            }
        }
        look
    }

    fn function(&mut self, function: &Function, look: &mut Look) {
        let address = function.address;
        match self.session.by_pci(address) {
            Ok(device) => {
                let seat = Seat {
                    address: Some(address),
                    numa: function.numa,
                };
                self.read(device, seat, look);
            }
            // The driver does not manage it, and nothing says that it should.
            Err(error) if error.is_not_found() && function.driver.is_none() => {}
            Err(error) => {
                if error.is_not_found() {
                    look.strangers.insert(address);
                }
                look.add_unreadable(Locator::Pci(address), card::failure(&error));
            }
        }
    }

    fn count(&mut self, look: &mut Look) {
        let count = self.session.count().unwrap_or_else(|error| {
            tracing::warn!(%error, "the cards cannot be counted");
            0
        });
        for index in 0..count.min(MOST_CARDS) {
            if self.leaves_out(CardRef::Index(index)) {
                look.skipped.push(index.to_string());
                continue;
            }
            match self.session.by_index(index) {
                Ok(device) => self.read(device, Seat::default(), look),
                Err(error) => look.add_unreadable(Locator::Index(index), card::failure(&error)),
            }
        }
    }

    fn read(&mut self, device: nvml::Device<'_>, seat: Seat, look: &mut Look) {
        match self.reader.read(device, seat) {
            Ok(card) => look.cards.extend(card),
            Err(failure) => look.add_unreadable(device.at(), failure),
        }
    }

    fn leaves_out(&self, card: CardRef) -> bool {
        match self.scope {
            Scope::All => false,
            Scope::Skip(cards) => cards.contains(&card),
            Scope::Only(only) => *only != card,
        }
    }
}

// === impl Look ===

impl Look {
    fn add_unreadable(&mut self, at: Locator, failure: CallFailure) {
        let (pci, index) = match at {
            Locator::Pci(address) => (Some(address), None),
            Locator::Index(index) => (None, Some(index)),
        };
        self.unreadable.push(Unreadable {
            pci,
            index,
            failure,
        });
    }
}
