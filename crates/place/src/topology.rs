//! Cards of a node and the connections between them, sorted by index.

use model::{Device, Entry, Kind, Snapshot};

use rules::{PLAIN, ScoreTable, Vendors};

use crate::{CardConnection, Matrix};

/// Every card of a snapshot, with the connections between them.
#[derive(Debug)]
pub struct CardTopology<'a> {
    /// Cards, sorted by index, then PCI address, then id.
    pub cards: Vec<&'a Entry>,
}

// === impl CardTopology ===

impl<'a> CardTopology<'a> {
    /// Takes the whole cards of a snapshot, whatever their health. Partitions are left out: their
    /// connections are those of their cards.
    pub fn from_snapshot(snapshot: &'a Snapshot) -> Self {
        let whole = |entry: &&Entry| matches!(entry.device.kind, Kind::Card { .. });
        let mut cards: Vec<&Entry> = snapshot.devices.iter().filter(whole).collect();
        cards.sort_by(|a, b| device_sort_key(&a.device).cmp(&device_sort_key(&b.device)));
        Self { cards }
    }

    /// Returns the connection of two cards, by their positions.
    pub fn find_connection(&self, a: usize, b: usize) -> CardConnection {
        CardConnection::between(&self.cards[a].device, &self.cards[b].device)
    }

    /// Returns the score of a pair of cards, by their positions.
    pub fn score_connection(&self, a: usize, b: usize, vendors: Vendors) -> u32 {
        let pair = [a, b].map(|at| &*self.cards[at].device);
        self.find_connection(a, b)
            .score_by(choose_table(pair, vendors))
    }

    /// Returns the score of every pair.
    pub fn score_matrix(&self, vendors: Vendors) -> Matrix {
        Matrix::new(self.cards.len(), |a, b| {
            self.score_connection(a, b, vendors)
        })
    }
}

/// Returns the table for a comparison of these devices: their vendor's, or the plain one if they
/// are of several vendors, whose scores have different scales.
pub(crate) fn choose_table<'d>(
    devices: impl IntoIterator<Item = &'d Device>,
    vendors: Vendors,
) -> &'static ScoreTable {
    let mut names = devices.into_iter().map(|device| device.vendor.as_str());
    let first = names.next().unwrap_or_default();
    if names.all(|name| name == first) {
        &vendors.find_rules(first).vendor().worth
    } else {
        &PLAIN.worth
    }
}

/// Returns the sort key of a device: index, then PCI address, then id. A device without an index
/// comes last.
pub(crate) fn device_sort_key(device: &Device) -> impl Ord + '_ {
    let index = device.index;
    (index.is_none(), index, device.pci, device.id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_stand_in_the_order_of_their_indices() {
        let entry = |id: &str, index: Option<&str>| {
            Entry::from(Device {
                index: index.and_then(|index| index.parse().ok()),
                ..Device::card_of("nvidia", id, "A100")
            })
        };
        let devices = [
            ("a", Some("10")),
            ("b", Some("9")),
            ("c", None),
            ("d", Some("0")),
        ];
        let snapshot = Snapshot {
            devices: devices.map(|(id, index)| entry(id, index)).into(),
            ..Snapshot::empty_at(jiff::Timestamp::UNIX_EPOCH)
        };
        let topology = CardTopology::from_snapshot(&snapshot);
        let ids: Vec<&str> = topology
            .cards
            .iter()
            .map(|c| c.device.id.as_str())
            .collect();
        assert_eq!(ids, ["d", "b", "a", "c"]);
    }
}
