//! Whole cards: how well those of a container are connected, beside what NVIDIA's search gives.

use std::{cmp::Ordering, sync::Arc};

use config::Pool;
use model::Snapshot;
use nvidia_rules::VENDORS;
use place::Matrix;
use pool::Offer;
use serde::Serialize;

use super::{
    Course, known, machine,
    traffic::{Event, Node, Traffic},
};

/// The most cards that a container wants.
const MOST: usize = 4;

/// What containers got on one machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Topology {
    /// The machine.
    pub(super) profile: String,
    pub(super) cards: usize,
    /// Our sets beside the known search's, from the same state and with the same scores, asked in
    /// the order of the driver's indices.
    pub(super) in_order: Beside,
    /// The same, asked in an order of chance, as the kubelet does.
    pub(super) by_chance: Beside,
    /// The score of the latest set of two and more cards, as a part of the best that the empty
    /// machine has for that size: of a node of ours and one of the known search's.
    pub(super) courses: Vec<Course>,
}

/// How often a set of ours scored higher than the other, the same, or lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Beside {
    pub(super) higher: usize,
    pub(super) same: usize,
    pub(super) lower: usize,
}

/// What is chosen from, and how good it is.
struct Yard {
    offer: Arc<Offer>,
    /// The ids of the cards, in the order of their indices.
    ids: Vec<String>,
    matrix: Matrix,
    /// By size: the score of the best set on the empty machine.
    best: Vec<u64>,
}

/// Lets containers come and go on a node of ours and on one of the known search's, the same ones on
/// both.
pub(super) fn run(
    profile: &str,
    snapshot: &Arc<Snapshot>,
    events: usize,
    seed: u64,
) -> anyhow::Result<Topology> {
    let yard = Yard::new(snapshot)?;
    let cards = yard.ids.len();
    let mut traffic = Traffic::new(seed, cards, MOST);
    let mut nodes = [(); 2].map(|()| Node::new((0..cards).collect()));
    let mut shares = [(); 2].map(|()| Vec::new());
    let (mut in_order, mut by_chance) = (Beside::default(), Beside::default());
    for _ in 0..events {
        match traffic.next() {
            Event::Comes(size) => {
                let chosen = yard.ours(&nodes[0].free, size)?;
                let free = traffic.shuffled(&nodes[0].free);
                if size > 1 {
                    in_order.note(&yard, &chosen, &nodes[0].free);
                    by_chance.note(&yard, &chosen, &free);
                }
                let free = traffic.shuffled(&nodes[1].free);
                let theirs = known::choose(&yard.matrix, &free, size);
                for ((node, share), set) in nodes.iter_mut().zip(&mut shares).zip([chosen, theirs])
                {
                    share.extend(yard.share(&set));
                    node.take(set);
                }
            }
            Event::Goes(at) => nodes.iter_mut().for_each(|node| node.give_back(at)),
            Event::Waits => {}
        }
    }
    let names = ["Ostler", "NVIDIA's search"];
    let courses = names.iter().zip(&shares);
    Ok(Topology {
        profile: profile.to_owned(),
        cards,
        in_order,
        by_chance,
        courses: courses
            .map(|(name, share)| Course::new(name, share))
            .collect(),
    })
}

// === impl Yard ===

impl Yard {
    fn new(snapshot: &Arc<Snapshot>) -> anyhow::Result<Self> {
        let topology = place::CardTopology::from_snapshot(snapshot);
        let matrix = topology.score_matrix(VENDORS);
        let ids = topology.cards.iter().map(|card| card.device.id.to_string());
        let mut best = vec![0; matrix.len() + 1];
        for set in 0..1usize << matrix.len() {
            let set: Vec<usize> = (0..matrix.len()).filter(|at| set >> at & 1 == 1).collect();
            best[set.len()] = matrix.sum_of_set(&set).max(best[set.len()]);
        }
        Ok(Self {
            offer: machine::offer(snapshot, Pool::of_all_devices("gpu", "nvidia.com/gpu"))?,
            ids: ids.collect(),
            matrix,
            best,
        })
    }

    /// What the agent would hand out.
    fn ours(&self, free: &[usize], size: usize) -> anyhow::Result<Vec<usize>> {
        let available: Vec<String> = free.iter().map(|at| self.ids[*at].clone()).collect();
        let chosen = place::prefer(&self.offer, &available, &[], size)?;
        let place = |id: String| self.ids.iter().position(|known| *known == id);
        Ok(chosen
            .iter()
            .filter_map(|id| place(id.to_string()))
            .collect())
    }

    /// The score of a set as a part of the best of its size; none for a single card.
    #[expect(clippy::cast_precision_loss, reason = "small scores")]
    fn share(&self, set: &[usize]) -> Option<f64> {
        (set.len() > 1)
            .then(|| self.matrix.sum_of_set(set) as f64 / self.best[set.len()].max(1) as f64)
    }
}

// === impl Beside ===

impl Beside {
    /// Holds a set of ours against what the known search gives when it is asked with these cards.
    fn note(&mut self, yard: &Yard, ours: &[usize], free: &[usize]) {
        let theirs = known::choose(&yard.matrix, free, ours.len());
        match yard
            .matrix
            .sum_of_set(ours)
            .cmp(&yard.matrix.sum_of_set(&theirs))
        {
            Ordering::Greater => self.higher += 1,
            Ordering::Equal => self.same += 1,
            Ordering::Less => self.lower += 1,
        }
    }
}
