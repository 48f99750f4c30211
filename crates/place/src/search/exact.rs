//! Exact search for up to 16 items. A set of items is a bit mask. The value of a mask is the best
//! sum over the divisions of the mask, found by dynamic programming that always divides off a set
//! with the lowest item left.
//!
//! Three rules keep the search small. A set whose upper bound is not above the best sum found is
//! skipped. Sets are tried from the highest score down. Of items that are alike in every respect
//! only the first is tried.

mod facts;

use self::facts::SearchTables;
use crate::Matrix;

/// Set of items: bit `n` is item `n`.
type Mask = usize;

/// Marks a mask whose value is not computed yet.
const OPEN: u32 = u32::MAX;

/// State of one search.
struct ExactSearch {
    facts: SearchTables,
    /// Value of each mask, or [`OPEN`].
    values: Vec<u32>,
}

/// Returns the best `size` items with `required` among them. Expects `2 ≤ size < len ≤ 16`, and
/// fewer than `size` required items.
pub(super) fn search_exact(matrix: &Matrix, required: &[usize], size: usize) -> Vec<usize> {
    let required = required.iter().fold(0, |mask, at| mask | 1 << at);
    let facts = SearchTables::new(matrix, required, size);
    let values = vec![OPEN; facts.all + 1];
    let mut search = ExactSearch { facts, values };
    let sum = search.find_best_sum();
    let chosen = search.first_best_set(sum);
    (0..matrix.len())
        .filter(|at| chosen >> at & 1 == 1)
        .collect()
}

// === impl ExactSearch ===

impl ExactSearch {
    /// Returns the highest sum of a division.
    fn find_best_sum(&mut self) -> u32 {
        let mut highest = None;
        if self.facts.sets() == 2 {
            let facts = &self.facts;
            facts.supersets(facts.all, &mut |set| {
                let sum = facts.mask_score(set) + facts.mask_score(facts.all ^ set);
                highest = highest.max(Some(sum));
            });
            return highest.unwrap_or_default();
        }
        let (full, rest) = self.facts.other_sets();
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
                highest = highest.max(Some(own + self.value_of_mask(left)));
            }
        }
        highest.unwrap_or_default()
    }

    /// Returns the best set of the first division with this sum. Sets compare as lists of indices,
    /// in which the missing items of a smaller set come last.
    fn first_best_set(&mut self, mut sum: u32) -> Mask {
        let (mut best, mut highest) = (0, None);
        let mut left = self.facts.all;
        while left != 0 {
            let set = self.next_set(left, sum);
            let own = self.facts.mask_score(set);
            if self.facts.is_full_set(set) && Some(own) > highest {
                (best, highest) = (set, Some(own));
            }
            sum -= own;
            left ^= set;
        }
        best
    }

    /// Returns the first set with the lowest item of `mask` in a division with this sum.
    fn next_set(&mut self, mask: Mask, sum: u32) -> Mask {
        if mask.count_ones() as usize <= self.facts.size {
            return mask;
        }
        let full = self.find_set(mask, self.facts.size, sum);
        let rest = mask.count_ones() as usize % self.facts.size;
        let small = match rest {
            0 => None,
            _ => self.find_set(mask, rest, sum),
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
    fn find_set(&mut self, mask: Mask, size: usize, sum: u32) -> Option<Mask> {
        let Self { facts, values } = self;
        let limit = facts.sum_limit(mask.count_ones() as usize - size);
        let mut found = None;
        facts.with_lowest(mask, size, &mut |set| {
            let (own, left) = (facts.mask_score(set), mask ^ set);
            if found.is_some() || own + limit < sum || !facts.may(set, left) {
                return;
            }
            // For two sets the exact value costs no more than its upper bound.
            let cheap = left.count_ones() as usize <= 2 * facts.size || values[left] != OPEN;
            let hopeless = !cheap && own + facts.bound(left) < sum;
            if !hopeless && own + compute_value(facts, values, left) == sum {
                found = Some(set);
            }
        });
        found
    }

    fn value_of_mask(&mut self, mask: Mask) -> u32 {
        compute_value(&self.facts, &mut self.values, mask)
    }
}

/// Returns the best sum over the divisions of `mask` in which all required items, if `mask` has
/// them, are in one full set. Stores the answer.
fn compute_value(facts: &SearchTables, values: &mut [u32], mask: Mask) -> u32 {
    let count = mask.count_ones() as usize;
    if count <= facts.size {
        return facts.mask_score(mask);
    }
    if values[mask] != OPEN {
        return values[mask];
    }
    let torn = mask & facts.required != 0;
    let best = match count {
        _ if !torn && count <= 2 * facts.size => value_of_two_sets(facts, mask, count),
        _ => most(facts, values, mask, count),
    };
    values[mask] = best;
    best
}

/// Returns the value of a mask of two sets without required items.
fn value_of_two_sets(facts: &SearchTables, mask: Mask, count: usize) -> u32 {
    let mut best = 0;
    let mut split =
        |set: Mask| best = best.max(facts.mask_score(set) + facts.mask_score(mask ^ set));
    match count % facts.size {
        0 => facts.with_lowest(mask, facts.size, &mut split),
        rest => facts.subsets(mask, rest, &mut split),
    }
    best
}

/// Returns the value of a mask of any number of sets.
fn most(facts: &SearchTables, values: &mut [u32], mask: Mask, count: usize) -> u32 {
    let rest = match mask & facts.required {
        0 => count % facts.size,
        _ => 0,
    };
    let size = if rest == 0 { facts.size } else { rest };
    let limit = facts.sum_limit(count - size);
    let mut best = 0;
    let mut with = |set: Mask| {
        let own = facts.mask_score(set);
        if own + limit > best {
            best = best.max(own + compute_value(facts, values, mask ^ set));
        }
    };
    match (mask & facts.required, rest) {
        (0, 0) => facts.with_lowest(mask, size, &mut with),
        (0, _) => facts.subsets(mask, size, &mut with),
        _ => facts.supersets(mask, &mut with),
    }
    best
}
