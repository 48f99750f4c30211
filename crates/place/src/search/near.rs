//! Search beyond 16 items: finds a division that no exchange of two items improves.

use std::cmp::Reverse;

use crate::Matrix;

/// Highest number of exchanges. Bounds the time; a division that is not finished by then is used as
/// it is.
const EXCHANGES: usize = 4096;

/// Division of the items into sets, while it is built and improved.
struct Division<'a> {
    matrix: &'a Matrix,
    /// Set of each item.
    of: Vec<usize>,
    /// Sum of the scores of an item with the members of a set, by item and set.
    company: Vec<Vec<u64>>,
    /// True for an item that must stay in the first set, by item.
    fixed: Vec<bool>,
}

/// Returns the best set of a good division. Expects `2 ≤ size < len`, and fewer than `size`
/// required items in index order.
pub(super) fn search_near(matrix: &Matrix, required: &[usize], size: usize) -> Vec<usize> {
    let sets = divide_items(matrix, required, size).into_iter();
    let fit = sets.filter(|set| set.len() == size && required.iter().all(|one| set.contains(one)));
    // Of sets with equal scores the first in index order, so that the answer is stable.
    fit.min_by_key(|set| (Reverse(matrix.sum_of_set(set)), set.clone()))
        .unwrap_or_default()
}

/// Divides the items by growth, then by exchanges.
pub(super) fn divide_items(matrix: &Matrix, required: &[usize], size: usize) -> Vec<Vec<usize>> {
    let mut division = Division::fill_sets(matrix, required, size);
    division.improve();
    let sets = 0..matrix.len().div_ceil(size);
    sets.map(|set| division.members_of_set(set)).collect()
}

// === impl Division ===

impl<'a> Division<'a> {
    /// Fills one set after the other. Each set starts from the lowest free item (the first set from
    /// the required items) and takes the item that adds most.
    fn fill_sets(matrix: &'a Matrix, required: &[usize], size: usize) -> Self {
        let len = matrix.len();
        let sets = len.div_ceil(size);
        let mut division = Self {
            matrix,
            of: vec![sets; len],
            company: vec![vec![0; sets]; len],
            fixed: vec![false; len],
        };
        for one in required {
            division.fixed[*one] = true;
            division.put_item(*one, 0);
        }
        for set in 0..sets {
            let missing = size - if set == 0 { required.len() } else { 0 };
            for _ in 0..missing {
                let left = (0..len).filter(|at| division.of[*at] == sets);
                let next = left.max_by_key(|at| (division.company[*at][set], len - at));
                let Some(next) = next else { break };
                division.put_item(next, set);
            }
        }
        division
    }

    fn put_item(&mut self, one: usize, set: usize) {
        self.of[one] = set;
        for (at, score) in self.matrix.row_scores(one).iter().enumerate() {
            self.company[at][set] += u64::from(*score);
        }
    }

    /// Exchanges the two items that gain most, until no exchange gains anything.
    fn improve(&mut self) {
        for _ in 0..EXCHANGES {
            let Some((a, b)) = self.find_exchange() else {
                return;
            };
            let (here, there) = (self.of[a], self.of[b]);
            for at in 0..self.of.len() {
                let (with_a, with_b) = (
                    self.matrix.score_of_pair(at, a),
                    self.matrix.score_of_pair(at, b),
                );
                let [with_a, with_b] = [with_a, with_b].map(u64::from);
                self.company[at][here] = self.company[at][here] + with_b - with_a;
                self.company[at][there] = self.company[at][there] + with_a - with_b;
            }
            (self.of[a], self.of[b]) = (there, here);
        }
    }

    fn find_exchange(&self) -> Option<(usize, usize)> {
        let (mut best, mut most) = (None, 0);
        for a in 0..self.of.len() {
            for b in a + 1..self.of.len() {
                let gain = self.exchange_gain(a, b);
                if gain > most {
                    (best, most) = (Some((a, b)), gain);
                }
            }
        }
        best
    }

    /// Returns the growth of the sum if two items change sets; 0 if they may not, or if the sum
    /// would not grow.
    fn exchange_gain(&self, a: usize, b: usize) -> u64 {
        let (here, there) = (self.of[a], self.of[b]);
        if here == there || self.fixed[a] || self.fixed[b] {
            return 0;
        }
        let after = self.company[a][there] + self.company[b][here];
        let before = self.company[a][here] + self.company[b][there];
        after.saturating_sub(before + 2 * u64::from(self.matrix.score_of_pair(a, b)))
    }

    fn members_of_set(&self, set: usize) -> Vec<usize> {
        let all = 0..self.of.len();
        all.filter(|at| self.of[*at] == set).collect()
    }
}
