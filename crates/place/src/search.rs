//! Search for the best set of a given size that also keeps the rest well connected. The available
//! items are divided into sets of that size (one set may be smaller) with the highest sum of set
//! scores. Of divisions with equal sums the first in index order is used, and in it the set with
//! the highest score. This is the goal of NVIDIA's search too (go-gpuallocator 0.6.0, best-effort
//! policy), so that the answers for whole cards stay those that users know.

mod exact;
mod near;

use crate::Matrix;

/// Highest number of items with an exact answer; beyond, see [`find_best_set`].
pub const EXACT: usize = 16;

/// Highest number of items that are searched at all. Beyond, items are taken in index order.
pub(crate) const MOST: usize = 64;

/// Returns the best `size` items of the matrix, with all of `required` among them, in index order.
/// A single item is the one whose loss costs the rest least.
///
/// The answer is exact for up to [`EXACT`] items. For up to 64 items, no exchange of two items
/// improves the division. If `size` divides the number of items and nothing is required, the sum is
/// at least the mean of all divisions: `(size − 1) / (items − 1)` of the sum over all pairs. Beyond
/// 64 items, items are taken in index order.
///
/// Ignores indices out of range. Returns fewer than `size` items only if the matrix has fewer.
///
/// Costs well under a millisecond for 16 cards of real machines, and a few milliseconds at most for
/// any matrix. NVIDIA's search tries every division, of which 16 cards in sets of three have
/// 22,422,400.
pub fn find_best_set(matrix: &Matrix, required: &[usize], size: usize) -> Vec<usize> {
    let mut required: Vec<usize> = required
        .iter()
        .copied()
        .filter(|at| *at < matrix.len())
        .collect();
    required.sort_unstable();
    required.dedup();
    let all = matrix.len();
    if required.len() >= size {
        required.truncate(size);
        return required;
    }
    match size {
        _ if size >= all => (0..all).collect(),
        1 => vec![spare(matrix)],
        _ if all <= EXACT => exact::search_exact(matrix, &required, size),
        _ if all <= MOST => near::search_near(matrix, &required, size),
        _ => take_first_items(all, required, size),
    }
}

/// Returns the item without which the others score highest: the one with the lowest sum of scores.
fn spare(matrix: &Matrix) -> usize {
    let loss = |at: &usize| -> u64 { matrix.row_scores(*at).iter().copied().map(u64::from).sum() };
    (0..matrix.len()).min_by_key(loss).unwrap_or_default()
}

/// Returns the required items and the first of the others.
fn take_first_items(all: usize, required: Vec<usize>, size: usize) -> Vec<usize> {
    let missing = size - required.len();
    let others = (0..all).filter(|at| required.binary_search(at).is_err());
    let mut set: Vec<usize> = others.take(missing).collect();
    set.extend(&required);
    set.sort_unstable();
    set
}

#[cfg(test)]
mod tests;
