//! The search of NVIDIA's plugin, as it is described: it tries every division of the available cards
//! into sets, in the order in which the kubelet names them.

use place::Matrix;

/// The set that it answers for `size` of these cards: the best of the first of the best divisions.
pub(super) fn choose(matrix: &Matrix, cards: &[usize], size: usize) -> Vec<usize> {
    if size >= cards.len() {
        return cards.to_vec();
    }
    let mut best: Option<(u64, Vec<usize>)> = None;
    divisions(cards, size, &mut |division| {
        let sum = division.iter().map(|set| matrix.sum_of_set(set)).sum();
        if best.as_ref().is_some_and(|(best, _)| sum <= *best) {
            return;
        }
        let full = division.iter().filter(|set| set.len() == size);
        // The last of equal ones, in reverse, is the first.
        let chosen = full.rev().max_by_key(|set| matrix.sum_of_set(set));
        best = chosen.map(|set| (sum, set.clone()));
    });
    best.map(|(_, set)| set).unwrap_or_default()
}

/// Every division into sets of `size`, of which one may be smaller.
fn divisions(cards: &[usize], size: usize, visit: &mut dyn FnMut(&[Vec<usize>])) {
    // What is missing to a whole number of sets stands at the end.
    let missing = cards.len().next_multiple_of(size) - cards.len();
    let mut all: Vec<Option<usize>> = cards.iter().copied().map(Some).collect();
    all.extend(std::iter::repeat_n(None, missing));
    divide(&all, (size, missing), &mut Vec::new(), visit);
}

/// Divides what is left. The first thing left is always in the next set, and a set has none or all
/// of what is missing.
fn divide(
    left: &[Option<usize>],
    (size, missing): (usize, usize),
    made: &mut Vec<Vec<usize>>,
    visit: &mut dyn FnMut(&[Vec<usize>]),
) {
    if left.is_empty() {
        return visit(made);
    }
    for picked in sets(left.len(), size) {
        let set: Vec<usize> = picked.iter().filter_map(|at| left[*at]).collect();
        if set.len() != size && size - set.len() != missing {
            continue;
        }
        let others = (0..left.len()).filter(|at| !picked.contains(at));
        let others: Vec<Option<usize>> = others.map(|at| left[at]).collect();
        made.push(set);
        divide(&others, (size, missing), made, visit);
        made.pop();
    }
}

/// Every choice of `size` of so many places with the first among them, in order.
fn sets(len: usize, size: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![0]];
    for _ in 1..size {
        let longer = |set: &Vec<usize>| {
            let next = set.last().map_or(0, |last| last + 1)..len;
            let set = set.clone();
            next.map(move |at| [set.as_slice(), &[at]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// The numbers are those of the plugin's own search.
    #[rstest]
    #[case(8, 1, 1)]
    #[case(8, 2, 105)]
    #[case(8, 3, 280)]
    #[case(8, 4, 35)]
    #[case(8, 5, 56)]
    #[case(8, 7, 8)]
    fn tries_as_many_divisions_as_the_plugin(
        #[case] len: usize,
        #[case] size: usize,
        #[case] count: usize,
    ) {
        let cards: Vec<usize> = (0..len).collect();
        let mut tried = 0;
        divisions(&cards, size, &mut |_| tried += 1);
        assert_eq!(tried, count);
    }

    #[test]
    fn the_first_of_equal_divisions_wins_in_the_order_of_the_question() {
        let matrix = Matrix::new(4, |_, _| 7);
        assert_eq!(choose(&matrix, &[0, 1, 2, 3], 2), [0, 1]);
        assert_eq!(choose(&matrix, &[3, 1, 2, 0], 2), [3, 1]);
        assert_eq!(choose(&matrix, &[2, 0], 1), [2]);
    }

    #[test]
    fn the_best_set_of_the_best_division_wins() {
        // The best pair of all is torn for the sake of the others.
        let score = |a, b| match (a, b) {
            (0, 1) => 50,
            (2, 3) => 60,
            (1, 2) => 70,
            _ => 0,
        };
        assert_eq!(choose(&Matrix::new(4, score), &[0, 1, 2, 3], 2), [2, 3]);
    }
}
