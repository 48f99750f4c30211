//! Tables of the exact search, made once: the score of every mask, items that are alike, and for
//! each item the others by score.

use super::Mask;
use crate::{EXACT, Matrix};

/// Tables for one matrix, set size and list of required items.
pub(super) struct SearchTables {
    /// Mask of all items.
    pub(super) all: Mask,
    /// Mask of the items that must be in one full set.
    pub(super) required: Mask,
    /// Number of items in a full set.
    pub(super) size: usize,
    /// Highest score of a full set.
    pub(super) highest: u32,
    /// Highest score of the smaller set.
    highest_small: u32,
    /// Sum of the pair scores of each mask.
    scores: Vec<u32>,
    /// Earlier items that are alike, by item. An item is tried only if the set already has these.
    alike: [Mask; EXACT],
    /// Other items as masks with their scores, the highest first, by item.
    near: Vec<Vec<(Mask, u32)>>,
}

// === impl SearchTables ===

impl SearchTables {
    pub(super) fn new(matrix: &Matrix, required: Mask, size: usize) -> Self {
        let len = matrix.len();
        let mut facts = Self {
            all: (1 << len) - 1,
            required,
            size,
            highest: 0,
            highest_small: 0,
            scores: score_masks(matrix),
            alike: find_alike(matrix, required),
            near: (0..len).map(|at| rank_neighbours(matrix, at)).collect(),
        };
        facts.highest = facts.highest_of(size);
        facts.highest_small = facts.highest_of(len % size);
        facts
    }

    /// Returns the sum over all pairs of a set.
    pub(super) fn mask_score(&self, set: Mask) -> u32 {
        self.scores[set]
    }

    /// Returns the number of sets in a division.
    pub(super) fn sets(&self) -> usize {
        self.near.len().div_ceil(self.size)
    }

    /// Returns true if a set is full and contains all required items.
    pub(super) fn is_full_set(&self, set: Mask) -> bool {
        set.count_ones() as usize == self.size && set & self.required == self.required
    }

    /// Returns true if a division may contain `set` and divide `left` further: the required items
    /// are not split, and a full set remains for them.
    pub(super) fn may(&self, set: Mask, left: Mask) -> bool {
        match set & self.required {
            0 => left & self.required == 0 || left.count_ones() as usize >= self.size,
            _ => self.is_full_set(set),
        }
    }

    /// Returns the number of full sets beside one, and the highest score of the smaller set.
    pub(super) fn other_sets(&self) -> (u32, u32) {
        (
            mask_to_u32(self.near.len() / self.size) - 1,
            self.highest_small,
        )
    }

    /// Returns an upper bound for a division of `count` items.
    pub(super) fn sum_limit(&self, count: usize) -> u32 {
        let small = match count % self.size {
            0 => 0,
            _ => self.highest_small,
        };
        self.highest * mask_to_u32(count / self.size) + small
    }

    /// Lists every full set with all required items, the highest score first, equal scores in index
    /// order.
    pub(super) fn ranked(&self) -> impl Iterator<Item = (u32, Mask)> + use<> {
        let mut sets = Vec::new();
        self.supersets(self.all, &mut |set| {
            // Of two sets, the one with the lowest item that is not in both comes first.
            let order = mask_to_u32(set).reverse_bits();
            sets.push(u64::from(self.mask_score(set)) << 32 | u64::from(order));
        });
        sets.sort_unstable_by(|a, b| b.cmp(a));
        sets.into_iter().map(|key| {
            let [score, order] = [key >> 32, key & u64::from(u32::MAX)].map(low);
            (score, order.reverse_bits() as Mask)
        })
    }

    /// Returns an upper bound for the divisions of `mask` into full sets and one smaller set. An
    /// item scores at most with its best `size - 1` others, and with fewer in the smaller set.
    pub(super) fn bound(&self, mask: Mask) -> u32 {
        let rest = mask.count_ones() as usize % self.size;
        let (mut sum, mut losses) = (0, [u32::MAX; EXACT]);
        let mut left = mask;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            let (mut company, mut small) = (0, 0);
            let present = self.near[at].iter().filter(|(other, _)| mask & other != 0);
            for (nth, (_, score)) in present.take(self.size - 1).enumerate() {
                company += score;
                if nth + 1 < rest {
                    small += score;
                }
            }
            sum += company;
            losses[at] = company - small;
        }
        if rest > 0 {
            losses.sort_unstable();
            sum -= losses[..rest].iter().sum::<u32>();
        }
        sum / 2
    }

    /// Visits every full set of `mask` with all required items, in index order. Of items that are
    /// alike it tries only the first.
    pub(super) fn supersets(&self, mask: Mask, visit: &mut impl FnMut(Mask)) {
        let must = self.required;
        let missing = self.size - must.count_ones() as usize;
        self.extend_set(mask, mask ^ must, must, missing, visit);
    }

    /// Visits every subset of `mask` with `size` items, in the same manner.
    pub(super) fn subsets(&self, mask: Mask, size: usize, visit: &mut impl FnMut(Mask)) {
        self.extend_set(mask, mask, 0, size, visit);
    }

    /// Visits every subset of `mask` with `size` items and the lowest item, in the same manner.
    pub(super) fn with_lowest(&self, mask: Mask, size: usize, visit: &mut impl FnMut(Mask)) {
        let lowest = mask & mask.wrapping_neg();
        self.extend_set(mask, mask ^ lowest, lowest, size - 1, visit);
    }

    /// Adds `missing` items of `open` to `set` and visits each result.
    fn extend_set(
        &self,
        mask: Mask,
        mut open: Mask,
        set: Mask,
        missing: usize,
        visit: &mut impl FnMut(Mask),
    ) {
        let free = |at: usize, set: Mask| self.alike[at] & mask & !set == 0;
        match missing {
            0 => visit(set),
            // The last item needs no recursive call. Most of the time is spent in this loop.
            1 => {
                while open != 0 {
                    let at = open.trailing_zeros() as usize;
                    open &= open - 1;
                    if free(at, set) {
                        visit(set | 1 << at);
                    }
                }
            }
            _ => {
                let mut spare = (open.count_ones() as usize + 1).saturating_sub(missing);
                while spare > 0 {
                    spare -= 1;
                    let at = open.trailing_zeros() as usize;
                    open &= open - 1;
                    if free(at, set) {
                        self.extend_set(mask, open, set | 1 << at, missing - 1, visit);
                    }
                }
            }
        }
    }

    fn highest_of(&self, size: usize) -> u32 {
        let mut highest = 0;
        self.subsets(self.all, size, &mut |set| {
            highest = highest.max(self.mask_score(set));
        });
        highest
    }
}

/// Converts a count or a mask, of which none has more than 16 bits.
fn mask_to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("masks have 16 bits")
}

fn low(half: u64) -> u32 {
    u32::try_from(half).expect("it is half of 64 bits")
}

/// Returns the sum over the pairs of every mask. With `a` and `b` the two lowest items of a mask,
/// the sum is that without `a`, plus that without `b`, minus that without both, plus the score of
/// `a` and `b`.
fn score_masks(matrix: &Matrix) -> Vec<u32> {
    let mut scores = vec![0; 1 << matrix.len()];
    for mask in 1..scores.len() {
        let no_a = mask & (mask - 1);
        if no_a == 0 {
            continue;
        }
        let none = no_a & (no_a - 1);
        let (a, b) = (mask.trailing_zeros(), no_a.trailing_zeros());
        let pair = matrix.score_of_pair(a as usize, b as usize);
        scores[mask] = scores[no_a] + (scores[mask ^ (no_a ^ none)] - scores[none]) + pair;
    }
    scores
}

/// Lists the items that are alike: both required or both not, and with equal scores for every third
/// item.
fn find_alike(matrix: &Matrix, required: Mask) -> [Mask; EXACT] {
    let len = matrix.len();
    let same = |a: usize, b: usize| {
        (required >> a ^ required >> b) & 1 == 0
            && (0..len).all(|c| {
                c == a || c == b || matrix.score_of_pair(a, c) == matrix.score_of_pair(b, c)
            })
    };
    let mut alike = [0; EXACT];
    for (at, before) in alike.iter_mut().enumerate().take(len) {
        *before = (0..at).filter(|b| same(at, *b)).fold(0, |m, b| m | 1 << b);
    }
    alike
}

fn rank_neighbours(matrix: &Matrix, at: usize) -> Vec<(Mask, u32)> {
    let others = (0..matrix.len()).filter(|other| *other != at);
    let mut near: Vec<_> = others
        .map(|o| (1 << o, matrix.score_of_pair(at, o)))
        .collect();
    near.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    near
}
