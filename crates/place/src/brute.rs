//! Reference search for the tests: tries every division. It visits divisions in index order, with
//! the items that are missing to a whole number of sets at the end, and keeps the first of equal
//! ones.

use crate::Matrix;

/// Returns the set that [`crate::best`] must return, for `size ≥ 2` and few items.
pub(crate) fn search_all(matrix: &Matrix, required: &[usize], size: usize) -> Vec<usize> {
    let scores: Vec<u64> = (0..1 << matrix.len())
        .map(|set| matrix.sum_of_set(&members_of_mask(set)))
        .collect();
    let required = required.iter().fold(0, |mask, at| mask | 1 << at);
    let mut best = (None, 0);
    divisions(matrix.len(), size, &mut |division| {
        let whole = division
            .iter()
            .filter(|set| set.count_ones() as usize == size);
        let fit = whole.filter(|set| *set & required == required);
        // The last of equal sets in reverse order is the first.
        let Some(chosen) = fit.rev().max_by_key(|set| scores[**set]) else {
            return;
        };
        let sum: u64 = division.iter().map(|set| scores[*set]).sum();
        if Some(sum) > best.0 {
            best = (Some(sum), *chosen);
        }
    });
    members_of_mask(best.1)
}

/// Visits every division of `len` items into sets of `size`, of which one may be smaller. A set is
/// a mask.
pub(crate) fn divisions(len: usize, size: usize, visit: &mut dyn FnMut(&[usize])) {
    let padded = len.next_multiple_of(size);
    divide_rest(len, (1 << padded) - 1, size, &mut Vec::new(), visit);
}

fn divide_rest(
    len: usize,
    left: usize,
    size: usize,
    made: &mut Vec<usize>,
    visit: &mut dyn FnMut(&[usize]),
) {
    if left == 0 {
        return visit(made);
    }
    let lowest = left & left.wrapping_neg();
    let nothing = len.next_multiple_of(size) - len;
    add_to_set(left ^ lowest, lowest, size - 1, &mut |set| {
        let real = set & ((1 << len) - 1);
        let missing = size - real.count_ones() as usize;
        if missing == 0 || missing == nothing {
            made.push(real);
            divide_rest(len, left ^ set, size, made, visit);
            made.pop();
        }
    });
}

/// Adds `count` items of `open` to `set`, in index order, and visits each result.
fn add_to_set(mut open: usize, set: usize, count: usize, visit: &mut dyn FnMut(usize)) {
    if count == 0 {
        return visit(set);
    }
    while open.count_ones() as usize >= count {
        let lowest = open & open.wrapping_neg();
        open ^= lowest;
        add_to_set(open, set | lowest, count - 1, visit);
    }
}

/// Returns the items of a mask.
pub(crate) fn members_of_mask(set: usize) -> Vec<usize> {
    (0..24).filter(|at| set >> at & 1 == 1).collect()
}
