//! One look at all cards.

use std::collections::BTreeSet;

use model::{CallFailure, CardRef, PciAddress, Unreadable};
use nvml::Session;
use probe::{
    protocol::Scope,
    sysfs::{self, Files, Machine},
};

use super::{
    bus::{self, Function},
    card::{self, Card, Reader, Seat},
    numa,
};

/// More cards than this are not counted: the number is nonsense.
const MOST_CARDS: u32 = 1024;

/// What a look gave.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Every card that could be read.
    pub(super) cards: Vec<Card>,
    /// Every card that could not.
    pub(super) unreadable: Vec<Unreadable>,
    /// Every card that was to be left out by its name.
    pub(super) skipped: Vec<CardRef>,
    /// Cards that are bound to the driver and that its library does not know.
    pub(super) strangers: BTreeSet<PciAddress>,
}

/// What is looked at, and how.
#[derive(Debug)]
pub(super) struct Looker<'a> {
    /// The open driver.
    pub(super) session: &'a Session,
    /// The host's files.
    pub(super) files: &'a Files,
    /// Reads the cards.
    pub(super) reader: &'a mut Reader,
    /// Which cards to look at.
    pub(super) scope: &'a Scope,
}

// === impl Looker ===

impl Looker<'_> {
    /// Looks at every card on the bus, or where there is none at every one that the driver counts.
    pub(super) fn look(mut self) -> Look {
        let mut look = Look::default();
        if !self.scan(&mut look) {
            self.count(&mut look);
        }
        look
    }

    /// Looks at every card on the bus; `false` where it shows none.
    fn scan(&mut self, look: &mut Look) -> bool {
        // Who names a card by its index has no bus to look at.
        if matches!(self.scope, Scope::Only(CardRef::Index(_))) {
            return false;
        }
        let mut on_bus = false;
        let machine = Machine::read(self.files);
        for address in sysfs::bus::addresses(self.files) {
            // Of a card that is left out not even the bus's files are read: they may hang too.
            if self.leaves_out(CardRef::Pci(address)) {
                on_bus = true;
                look.leave_out(self.scope, CardRef::Pci(address));
            } else if let Some(function) = bus::function(self.files, address) {
                on_bus = true;
                if function.may_be_managed() {
                    self.function(&function, &machine, look);
                }
            }
        }
        on_bus
    }

    fn function(&mut self, function: &Function, machine: &Machine, look: &mut Look) {
        let address = function.address;
        match self.session.by_pci(address) {
            Ok(device) => {
                let seat = Seat {
                    address: Some(address),
                    numa: machine.by_bus(self.files, address, function.numa),
                };
                let known = look.cards.len();
                self.read(device, seat, look);
                // Only who has told its name is asked more.
                for card in look.cards.iter_mut().skip(known) {
                    if seat.numa.is_none() {
                        card.set_numa(numa::by_driver(machine, device));
                    }
                }
            }
            // The driver does not manage it, and nothing says that it should.
            Err(error) if error.is_not_found() && function.driver.is_none() => {}
            Err(error) => {
                if error.is_not_found() {
                    look.strangers.insert(address);
                }
                look.add_unreadable(CardRef::Pci(address), card::failure(&error));
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
                look.leave_out(self.scope, CardRef::Index(index));
                continue;
            }
            match self.session.by_index(index) {
                Ok(device) => self.read(device, Seat::default(), look),
                Err(error) => look.add_unreadable(CardRef::Index(index), card::failure(&error)),
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
    /// Writes down a card that is left out by its name. Those beside an only one are nobody's
    /// question, and may be anything that is on the bus.
    fn leave_out(&mut self, scope: &Scope, card: CardRef) {
        if matches!(scope, Scope::Skip(_)) {
            self.skipped.push(card);
        }
    }

    fn add_unreadable(&mut self, card: CardRef, failure: CallFailure) {
        self.unreadable.push(Unreadable { card, failure });
    }
}
