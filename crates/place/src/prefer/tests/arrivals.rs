//! Ten thousand containers start and end: the state of a node over time under each policy.

use super::*;
use nvidia_rules::NVIDIA;

use crate::{CardConnection, Matrix, brute};

const EVENTS: usize = 10_000;

/// Random numbers, the same in each run.
struct Dice(u64);

// === impl Dice ===

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }
}

/// A node with its free units and the units of each container.
struct Node {
    offer: Offer,
    free: Vec<String>,
    held: Vec<Vec<String>>,
}

// === impl Node ===

impl Node {
    fn new(offer: Offer) -> Self {
        let free = offer.units.iter().map(|u| u.id.to_string()).collect();
        let held = Vec::new();
        Self { offer, free, held }
    }

    fn take(&mut self, chosen: Vec<String>) {
        self.free.retain(|id| !chosen.contains(id));
        self.held.push(chosen);
    }

    fn give_back(&mut self, at: usize) {
        self.free.extend(self.held.remove(at));
        self.free.sort();
    }

    /// Returns the number of cards without a unit in use.
    fn whole(&self, replicas: usize) -> usize {
        let mut cards: Vec<&str> = self
            .free
            .iter()
            .filter_map(|id| id.split("::").next())
            .collect();
        cards.sort_unstable();
        cards
            .chunk_by(|a, b| a == b)
            .filter(|card| card.len() == replicas)
            .count()
    }
}

fn shared(policy: Policy) -> Offer {
    let mut machine = machines::hgx2();
    machine.truncate(8);
    machines::offer(machine, 6, pool(policy, Distinct::Off))
}

/// Returns the number of unused cards that an answer begins to use.
fn opened(free: &[String], chosen: &[String]) -> usize {
    let of = |ids: &[String], card: &str| ids.iter().filter(|id| id.starts_with(card)).count();
    let cards: BTreeSet<&str> = chosen
        .iter()
        .filter_map(|id| id.split("::").next())
        .collect();
    cards.into_iter().filter(|card| of(free, card) == 6).count()
}

#[test]
fn packed_opens_no_more_cards_than_first_fit_and_keeps_more_of_them_whole() {
    let (mut packed, mut first) = (
        Node::new(shared(Policy::Packed)),
        Node::new(shared(Policy::FirstFit)),
    );
    let mut dice = Dice(42);
    let (mut whole_packed, mut whole_first) = (0, 0);
    for _ in 0..EVENTS {
        let (size, goes) = (1 + dice.below(5), dice.below(100));
        if goes < 48 && !packed.held.is_empty() {
            // The same container ends on both nodes.
            let at = dice.below(packed.held.len());
            packed.give_back(at);
            first.give_back(at);
        } else if packed.free.len() >= size {
            let by_packed = texts(&prefer(&packed.offer, &packed.free, &[], size).unwrap());
            let by_first = texts(&prefer(&first.offer, &packed.free, &[], size).unwrap());
            assert!(opened(&packed.free, &by_packed) <= opened(&packed.free, &by_first));
            let own = texts(&prefer(&first.offer, &first.free, &[], size).unwrap());
            packed.take(by_packed);
            first.take(own);
        }
        whole_packed += packed.whole(6);
        whole_first += first.whole(6);
    }
    assert!(
        whole_packed > whole_first,
        "{whole_packed} against {whole_first}"
    );
}

/// Returns the set that a search over all divisions in the order of the cards finds first, as
/// NVIDIA's plugin does.
fn known(matrix: &Matrix, cards: &[usize], size: usize) -> Vec<usize> {
    let part = Matrix::new(cards.len(), |a, b| matrix.score_of_pair(cards[a], cards[b]));
    let set = brute::search_all(&part, &[], size);
    set.into_iter().map(|at| cards[at]).collect()
}

#[rstest::rstest]
#[case(machines::volta())]
#[case(machines::dgx_a100())]
fn topology_never_scores_less_than_the_known_search(#[case] cards: Vec<model::Device>) {
    let matrix = Matrix::new(8, |a, b| {
        CardConnection::between(&cards[a], &cards[b]).score_by(&NVIDIA.worth)
    });
    let mut node = Node::new(whole(cards));
    let number = |id: &String| id.trim_start_matches("GPU-").parse::<usize>().unwrap();
    let mut dice = Dice(99);
    for _ in 0..EVENTS {
        let (size, goes) = (1 + dice.below(4), dice.below(100));
        if goes < 50 && !node.held.is_empty() {
            let at = dice.below(node.held.len());
            node.give_back(at);
        } else if node.free.len() >= size {
            let chosen = texts(&prefer(&node.offer, &node.free, &[], size).unwrap());
            let free: Vec<usize> = node.free.iter().map(number).collect();
            let ours: Vec<usize> = chosen.iter().map(number).collect();
            assert!(matrix.sum_of_set(&ours) >= matrix.sum_of_set(&known(&matrix, &free, size)));
            node.take(chosen);
        }
    }
}
