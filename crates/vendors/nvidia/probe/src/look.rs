//! Survey of all cards.

use std::collections::BTreeSet;

use model::{CallFailure, CardRef, PciAddress, Unreadable};
use nvml::NvmlSession;
use probe::{
    protocol::Scope,
    sysfs::{self, HostFiles, NumaNodes},
};

use super::{
    bus::{self, CardFunction},
    card::{self, BusFacts, CardReader, SurveyedCard},
    numa,
};

/// Most cards that are read by index. A driver that counts more is wrong.
const MOST_CARDS: u32 = 1024;

/// Result of a survey.
#[derive(Debug, Default)]
pub(super) struct CardSurvey {
    /// Cards that could be read.
    pub(super) cards: Vec<SurveyedCard>,
    /// Cards that could not be read, with the failure.
    pub(super) unreadable: Vec<Unreadable>,
    /// Cards that were left out because the settings name them.
    pub(super) skipped: Vec<CardRef>,
    /// Cards that are bound to the driver and unknown to NVML.
    pub(super) strangers: BTreeSet<PciAddress>,
}

/// Inputs of a survey.
#[derive(Debug)]
pub(super) struct Surveyor<'a> {
    /// Open driver.
    pub(super) session: &'a NvmlSession,
    /// Host files, for the PCI bus.
    pub(super) files: &'a HostFiles,
    /// Reader of the cards; keeps their constant facts.
    pub(super) reader: &'a mut CardReader,
    /// Cards to survey.
    pub(super) scope: &'a Scope,
}

// === impl Surveyor ===

impl Surveyor<'_> {
    /// Surveys every card on the PCI bus, or every card that NVML counts if the bus shows none.
    pub(super) fn survey_cards(mut self) -> CardSurvey {
        let mut look = CardSurvey::default();
        // Counting cannot tell a lost card from one that was never there, so it is only the second
        // choice.
        if !self.survey_bus(&mut look) {
            self.survey_by_index(&mut look);
        }
        look
    }

    /// Surveys every card on the PCI bus; `false` if the bus shows no card.
    fn survey_bus(&mut self, look: &mut CardSurvey) -> bool {
        // A card is named by its index only on a machine without a PCI bus.
        if matches!(self.scope, Scope::Only(CardRef::Index(_))) {
            return false;
        }
        let mut on_bus = false;
        let machine = NumaNodes::read_nodes(self.files);
        for address in sysfs::bus::addresses(self.files) {
            // Not even the bus's files of a card that is left out are read: reading them may hang
            // too.
            if self.leaves_out(CardRef::Pci(address)) {
                on_bus = true;
                look.leave_out(self.scope, CardRef::Pci(address));
            } else if let Some(function) = bus::read_card_function(self.files, address) {
                on_bus = true;
                if function.may_be_managed() {
                    self.add_function(&function, &machine, look);
                }
            }
        }
        on_bus
    }

    /// Reads the card at a PCI address, with the NUMA node that the driver tells if the bus has
    /// none.
    fn add_function(
        &mut self,
        function: &CardFunction,
        machine: &NumaNodes,
        look: &mut CardSurvey,
    ) {
        let address = function.address;
        match self.session.by_pci(address) {
            Ok(device) => {
                let seat = BusFacts {
                    address: Some(address),
                    numa: machine.by_bus(self.files, address, function.numa),
                };
                let known = look.cards.len();
                self.add_card(device, seat, look);
                // Only a card that told its UUID gets more calls.
                for card in look.cards.iter_mut().skip(known) {
                    if seat.numa.is_none() {
                        card.set_numa(numa::by_driver(machine, device));
                    }
                }
            }
            // The card is bound to no driver and NVML does not know it, so nothing is wrong.
            Err(error) if error.is_not_found() && function.driver.is_none() => {}
            Err(error) => {
                if error.is_not_found() {
                    look.strangers.insert(address);
                }
                look.add_unreadable(CardRef::Pci(address), card::call_failure(&error));
            }
        }
    }

    /// Reads every card that NVML counts, by index: under WSL the PCI bus is not visible.
    fn survey_by_index(&mut self, look: &mut CardSurvey) {
        let count = self.session.count_cards().unwrap_or_else(|error| {
            tracing::warn!(%error, "the cards cannot be counted");
            0
        });
        for index in 0..count.min(MOST_CARDS) {
            if self.leaves_out(CardRef::Index(index)) {
                look.leave_out(self.scope, CardRef::Index(index));
                continue;
            }
            match self.session.by_index(index) {
                Ok(device) => self.add_card(device, BusFacts::default(), look),
                Err(error) => {
                    look.add_unreadable(CardRef::Index(index), card::call_failure(&error))
                }
            }
        }
    }

    /// Reads one card into the result.
    fn add_card(&mut self, device: nvml::DeviceHandle<'_>, seat: BusFacts, look: &mut CardSurvey) {
        match self.reader.read_card(device, seat) {
            Ok(card) => look.cards.extend(card),
            Err(failure) => look.add_unreadable(device.handle_card(), failure),
        }
    }

    /// Returns true if the scope excludes the card.
    fn leaves_out(&self, card: CardRef) -> bool {
        match self.scope {
            Scope::All => false,
            Scope::Skip(cards) => cards.contains(&card),
            Scope::Only(only) => *only != card,
        }
    }
}

// === impl CardSurvey ===

impl CardSurvey {
    /// Notes a card that is left out by its name. Cards beside an `Only` are not noted: their
    /// addresses may belong to any PCI device.
    fn leave_out(&mut self, scope: &Scope, card: CardRef) {
        if matches!(scope, Scope::Skip(_)) {
            self.skipped.push(card);
        }
    }

    fn add_unreadable(&mut self, card: CardRef, failure: CallFailure) {
        self.unreadable.push(Unreadable { card, failure });
    }
}
