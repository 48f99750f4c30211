//! The best set of a given size, with an eye to what is left: the available things are divided
//! into sets of that size (one may be smaller), so that the sum of all sets' scores is the largest
//! there is; of the divisions with that sum the first in index order is taken, and in it the set
//! with the largest score.

mod exact;
mod near;

use crate::Matrix;

/// Up to this many things the answer is exact; beyond, see [`best`].
pub const EXACT: usize = 16;

/// Beyond this many things they are taken in their order.
pub(crate) const MOST: usize = 64;

/// The best `size` of all things of the matrix with all of `required` among them, in index order.
/// One alone is the one whose loss costs the rest least.
///
/// Exact for up to [`EXACT`] things. Up to 64, the division is one that no exchange of two things
/// improves: if `size` divides the number of things and nothing is required, its sum is at least
/// the mean of all divisions, `(size − 1) / (things − 1)` of the sum over all pairs. Beyond 64,
/// they are taken in their order. Indices out of range are left out; fewer than `size` are
/// returned only if there are fewer.
///
/// Costs well under a millisecond for real machines of 16 cards, a few at most for any matrix.
pub fn best(matrix: &Matrix, required: &[usize], size: usize) -> Vec<usize> {
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
        _ if all <= EXACT => exact::best(matrix, &required, size),
        _ if all <= MOST => near::best(matrix, &required, size),
        _ => first(all, required, size),
    }
}

/// The one without which the others score highest: it has the least to do with them.
fn spare(matrix: &Matrix) -> usize {
    let loss = |at: &usize| -> u64 { matrix.row(*at).iter().copied().map(u64::from).sum() };
    (0..matrix.len()).min_by_key(loss).unwrap_or_default()
}

/// What is required, and the first of the others.
fn first(all: usize, required: Vec<usize>, size: usize) -> Vec<usize> {
    let missing = size - required.len();
    let others = (0..all).filter(|at| required.binary_search(at).is_err());
    let mut set: Vec<usize> = others.take(missing).collect();
    set.extend(&required);
    set.sort_unstable();
    set
}

#[cfg(test)]
mod tests;
