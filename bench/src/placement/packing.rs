//! Shared cards: how many stay wholly free under each policy.

use std::{collections::BTreeSet, sync::Arc};

use config::{Distinct, Method, Placement, Policy, Pool, Sharing};
use model::Snapshot;
use pool::Offer;
use serde::Serialize;

use super::{
    Course, machine,
    traffic::{Event, Node, Traffic},
};

/// How many units each card is shared as.
const UNITS: usize = 6;

/// The most units that a container wants: less than a card.
const MOST: usize = 5;

/// The policies, and what they are called.
const POLICIES: [(Policy, &str); 4] = [
    (Policy::Packed, "packed"),
    (Policy::BestFit, "best-fit"),
    (Policy::FirstFit, "first-fit"),
    (Policy::Spread, "spread"),
];

/// What became of the cards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Packing {
    pub(super) cards: usize,
    /// Units on each.
    pub(super) units: usize,
    /// The most that a container wants.
    pub(super) most: usize,
    /// How many requests were met.
    pub(super) requests: usize,
    /// From the state that `packed` had made: how often it began more new cards than first-fit
    /// would, as many, and fewer.
    pub(super) more: usize,
    pub(super) as_many: usize,
    pub(super) fewer: usize,
    /// Cards that nobody uses, after each event.
    pub(super) courses: Vec<Course>,
}

/// A node under one policy, and its free whole cards after each event.
struct Lane {
    name: &'static str,
    offer: Arc<Offer>,
    node: Node<String>,
    whole: Vec<f64>,
}

/// Lets containers come and go on a node for each policy, the same ones on all.
pub(super) fn run(snapshot: &Arc<Snapshot>, events: usize, seed: u64) -> anyhow::Result<Packing> {
    let lanes = POLICIES.map(|(policy, name)| Lane::new(snapshot, policy, name));
    let mut lanes = lanes.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let cards = snapshot.devices.len();
    let mut traffic = Traffic::new(seed, cards * UNITS, MOST);
    let (mut more, mut as_many, mut fewer) = (0, 0, 0);
    for _ in 0..events {
        match traffic.next() {
            Event::Comes(size) => {
                let free = &lanes[0].node.free;
                let by = |lane: &Lane| anyhow::Ok(opened(free, &lane.choose(free, size)?));
                match by(&lanes[0])?.cmp(&by(&lanes[2])?) {
                    std::cmp::Ordering::Greater => more += 1,
                    std::cmp::Ordering::Equal => as_many += 1,
                    std::cmp::Ordering::Less => fewer += 1,
                }
                for lane in &mut lanes {
                    let chosen = lane.choose(&lane.node.free, size)?;
                    lane.node.take(chosen);
                }
            }
            Event::Goes(at) => lanes.iter_mut().for_each(|lane| lane.node.give_back(at)),
            Event::Waits => {}
        }
        lanes.iter_mut().for_each(Lane::count);
    }
    let courses = lanes.iter().map(|lane| Course::new(lane.name, &lane.whole));
    Ok(Packing {
        cards,
        units: UNITS,
        most: MOST,
        requests: more + as_many + fewer,
        more,
        as_many,
        fewer,
        courses: courses.collect(),
    })
}

// === impl Lane ===

impl Lane {
    fn new(snapshot: &Arc<Snapshot>, policy: Policy, name: &'static str) -> anyhow::Result<Self> {
        let placement = Placement {
            policy,
            ..Placement::default()
        };
        let sharing = Sharing {
            method: Method::TimeSlicing,
            replicas: u32::try_from(UNITS)?,
            distinct: Distinct::Off,
            ..Sharing::default()
        };
        let pool = Pool {
            placement,
            sharing,
            ..Pool::of_all_devices("gpu", "nvidia.com/gpu")
        };
        let offer = machine::offer(snapshot, pool)?;
        let units = offer.units.iter().map(|unit| unit.id.to_string());
        Ok(Self {
            name,
            node: Node::new(units.collect()),
            offer,
            whole: Vec::new(),
        })
    }

    fn choose(&self, free: &[String], size: usize) -> anyhow::Result<Vec<String>> {
        let chosen = place::prefer(&self.offer, free, &[], size)?;
        Ok(chosen.iter().map(ToString::to_string).collect())
    }

    #[expect(clippy::cast_precision_loss, reason = "a few cards")]
    fn count(&mut self) {
        self.whole.push(whole(&self.node.free).len() as f64);
    }
}

/// The cards of which every unit is free.
fn whole(free: &[String]) -> BTreeSet<&str> {
    let same = |a: &String, b: &String| card(a) == card(b);
    let cards = free.chunk_by(same).filter(|units| units.len() == UNITS);
    cards.map(|units| card(&units[0])).collect()
}

/// How many cards an answer begins to use.
fn opened(free: &[String], chosen: &[String]) -> usize {
    let whole = whole(free);
    let cards: BTreeSet<&str> = chosen.iter().map(|unit| card(unit)).collect();
    cards.intersection(&whole).count()
}

/// The card of a unit.
fn card(unit: &str) -> &str {
    unit.split("::").next().unwrap_or(unit)
}
