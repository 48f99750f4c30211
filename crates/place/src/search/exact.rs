//! Exact search for up to 16 items. A set of items is a bit mask. The value of a mask is the best
//! sum over the divisions of the mask, found by dynamic programming that always divides off a set
//! with the lowest item left.
//!
//! Three rules keep the search small. A set whose upper bound is not above the best sum found is
//! skipped. Sets are tried from the highest score down. Of items that are alike in every respect
//! only the first is tried.

mod facts;

use self::facts::Facts;
use crate::Matrix;

/// Set of items: bit `n` is item `n`.
type Mask = usize;

/// Marks a mask whose value is not computed yet.
const OPEN: u32 = u32::MAX;

/// State of one search.
struct Search {
    facts: Facts,
    /// Value of each mask, or [`OPEN`].
    values: Vec<u32>,
}

/// Returns the best `size` items with `required` among them. Expects `2 ≤ size < len ≤ 16`, and
/// fewer than `size` required items.
pub(super) fn best(matrix: &Matrix, required: &[usize], size: usize) -> Vec<usize> {
    let required = required.iter().fold(0, |mask, at| mask | 1 << at);
    let facts = Facts::new(matrix, required, size);
    let values = vec![OPEN; facts.all + 1];
    let mut search = Search { facts, values };
    let sum = search.sum();
    let chosen = search.first(sum);
    (0..matrix.len())
        .filter(|at| chosen >> at & 1 == 1)
        .collect()
}

// === impl Search ===

impl Search {
    /// Returns the highest sum of a division.
    fn sum(&mut self) -> u32 {
        let mut highest = None;
        if self.facts.sets() == 2 {
            let facts = &self.facts;
            facts.supersets(facts.all, &mut |set| {
                let sum = facts.score(set) + facts.score(facts.all ^ set);
                highest = highest.max(Some(sum));
            });
            return highest.unwrap_or_default();
        }
        let (full, rest) = self.facts.others();
        for (own, set) in self.facts.ranked() {
            // No division that is left to try has a higher sum: sets come from the highest score
            // down.
            let limit = match self.facts.required {
                0 => own * (full + 1) + rest,
                _ => own + self.facts.highest * full + rest,
            };
            let beaten = |bound| highest.is_some_and(|found| bound <= found);
            if beaten(limit) {
                break;
            }
            let left = self.facts.all ^ set;
            if !beaten(own + self.facts.bound(left)) {
                highest = highest.max(Some(own + self.value(left)));
            }
        }
        highest.unwrap_or_default()
    }

    /// Returns the best set of the first division with this sum. Sets compare as lists of indices,
    /// in which the missing items of a smaller set come last.
    fn first(&mut self, mut sum: u32) -> Mask {
        let (mut best, mut highest) = (0, None);
        let mut left = self.facts.all;
        while left != 0 {
            let set = self.next(left, sum);
            let own = self.facts.score(set);
            if self.facts.fits(set) && Some(own) > highest {
                (best, highest) = (set, Some(own));
            }
            sum -= own;
            left ^= set;
        }
        best
    }

    /// Returns the first set with the lowest item of `mask` in a division with this sum.
    fn next(&mut self, mask: Mask, sum: u32) -> Mask {
        if mask.count_ones() as usize <= self.facts.size {
            return mask;
        }
        let full = self.find(mask, self.facts.size, sum);
        let rest = mask.count_ones() as usize % self.facts.size;
        let small = match rest {
            0 => None,
            _ => self.find(mask, rest, sum),
        };
        match (full, small) {
            (Some(full), Some(small)) => {
                let differ = full ^ small;
                let lowest = differ & differ.wrapping_neg();
                if full & lowest != 0 { full } else { small }
            }
            (full, small) => full.or(small).expect("a division has this sum"),
        }
    }

    /// Returns the first set of `size` items, with the lowest item of `mask`, that is part of a
    /// division of `mask` with this sum.
    fn find(&mut self, mask: Mask, size: usize, sum: u32) -> Option<Mask> {
        let Self { facts, values } = self;
        let limit = facts.limit(mask.count_ones() as usize - size);
        let mut found = None;
        facts.with_lowest(mask, size, &mut |set| {
            let (own, left) = (facts.score(set), mask ^ set);
            if found.is_some() || own + limit < sum || !facts.may(set, left) {
                return;
            }
            // For two sets the exact value costs no more than its upper bound.
            let cheap = left.count_ones() as usize <= 2 * facts.size || values[left] != OPEN;
            let hopeless = !cheap && own + facts.bound(left) < sum;
            if !hopeless && own + value(facts, values, left) == sum {
                found = Some(set);
            }
        });
        found
    }

    fn value(&mut self, mask: Mask) -> u32 {
        value(&self.facts, &mut self.values, mask)
    }
}

/// Returns the best sum over the divisions of `mask` in which all required items, if `mask` has
/// them, are in one full set. Stores the answer.
fn value(facts: &Facts, values: &mut [u32], mask: Mask) -> u32 {
    let count = mask.count_ones() as usize;
    if count <= facts.size {
        return facts.score(mask);
    }
    if values[mask] != OPEN {
        return values[mask];
    }
    let torn = mask & facts.required != 0;
    let best = match count {
        _ if !torn && count <= 2 * facts.size => halves(facts, mask, count),
        _ => most(facts, values, mask, count),
    };
    values[mask] = best;
    best
}

/// Returns the value of a mask of two sets without required items.
fn halves(facts: &Facts, mask: Mask, count: usize) -> u32 {
    let mut best = 0;
    let mut split = |set: Mask| best = best.max(facts.score(set) + facts.score(mask ^ set));
    match count % facts.size {
        0 => facts.with_lowest(mask, facts.size, &mut split),
        rest => facts.subsets(mask, rest, &mut split),
    }
    best
}

/// Returns the value of a mask of any number of sets.
fn most(facts: &Facts, values: &mut [u32], mask: Mask, count: usize) -> u32 {
    let rest = match mask & facts.required {
        0 => count % facts.size,
        _ => 0,
    };
    let size = if rest == 0 { facts.size } else { rest };
    let limit = facts.limit(count - size);
    let mut best = 0;
    let mut with = |set: Mask| {
        let own = facts.score(set);
        if own + limit > best {
            best = best.max(own + value(facts, values, mask ^ set));
        }
    };
    match (mask & facts.required, rest) {
        (0, 0) => facts.with_lowest(mask, size, &mut with),
        (0, _) => facts.subsets(mask, size, &mut with),
        _ => facts.supersets(mask, &mut with),
    }
    best
}
