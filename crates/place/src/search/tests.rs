use nvidia_rules::NVIDIA;
use proptest::prelude::*;

use super::*;
use crate::{
    CardConnection,
    brute::{self, divisions},
    machines,
};

fn of(cards: &[model::Device]) -> Matrix {
    Matrix::new(cards.len(), |a, b| {
        CardConnection::between(&cards[a], &cards[b]).score_by(&NVIDIA.worth)
    })
}

fn part(matrix: &Matrix, some: &[usize]) -> Matrix {
    Matrix::new(some.len(), |a, b| matrix.score_of_pair(some[a], some[b]))
}

/// Compares both searches for subsets of a machine's first ten cards, for every size from two on,
/// without and with required items.
fn agree(matrix: &Matrix) {
    let len = matrix.len().min(10);
    for mask in 1..1usize << len {
        let some: Vec<usize> = (0..len).filter(|at| mask >> at & 1 == 1).collect();
        let matrix = part(matrix, &some);
        for size in 2..=some.len() {
            assert_eq!(
                find_best_set(&matrix, &[], size),
                brute::search_all(&matrix, &[], size),
                "{size} of {some:?}"
            );
            let required = [mask % some.len(), mask / 7 % some.len()];
            let required = &required[..1 + mask % 2];
            let found = find_best_set(&matrix, required, size);
            assert_eq!(
                found,
                brute::search_all(&matrix, required, size),
                "{size} of {some:?} with {required:?}"
            );
        }
    }
}

#[rstest::rstest]
#[case::rtx8000(machines::rtx8000())]
#[case::pascal(machines::pascal())]
#[case::volta(machines::volta())]
#[case::volta_twice(machines::volta_twice())]
#[case::dgx_a100(machines::dgx_a100())]
#[case::hgx2(machines::hgx2())]
fn finds_what_trying_everything_finds(#[case] cards: Vec<model::Device>) {
    agree(&of(&cards));
}

#[test]
fn finds_the_best_of_the_second_board_too() {
    let cards = machines::hgx2();
    let some: Vec<usize> = vec![0, 2, 3, 7, 8, 9, 10, 12, 13, 15];
    agree(&part(&of(&cards), &some));
}

/// The reference search visits as many divisions as NVIDIA's search does.
#[rstest::rstest]
#[case(8, 2, 105)]
#[case(8, 3, 280)]
#[case(8, 5, 56)]
#[case(10, 4, 1575)]
#[case(10, 6, 210)]
fn trying_everything_tries_everything(
    #[case] len: usize,
    #[case] size: usize,
    #[case] count: usize,
) {
    let mut made = 0;
    divisions(len, size, &mut |_| made += 1);
    assert_eq!(made, count);
}

#[test]
fn one_alone_is_the_one_whose_loss_costs_the_rest_least() {
    let volta = of(&machines::volta());
    for mask in 1..256usize {
        let some: Vec<usize> = (0..8).filter(|at| mask >> at & 1 == 1).collect();
        let matrix = part(&volta, &some);
        let rest = |out: usize| {
            let rest: Vec<usize> = (0..some.len()).filter(|at| *at != out).collect();
            matrix.sum_of_set(&rest)
        };
        let highest = (0..some.len()).map(rest).max().unwrap();
        let first = (0..some.len()).find(|at| rest(*at) == highest).unwrap();
        assert_eq!(find_best_set(&matrix, &[], 1), [first], "of {some:?}");
    }
}

/// A measured bound, not a proven one: runs the search beyond 16 items on matrices whose best sum
/// is known.
#[test]
fn the_search_beyond_sixteen_comes_close_to_the_best() {
    let mut state = 5u64;
    let mut dice = |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(state % 1000).unwrap()
    };
    for size in [2, 3, 4, 5, 6].repeat(20) {
        let matrix = Matrix::new(10, &mut dice);
        let sum = |sets: &[Vec<usize>]| sets.iter().map(|set| matrix.sum_of_set(set)).sum::<u64>();
        let mut highest = 0;
        divisions(10, size, &mut |division| {
            let sets: Vec<_> = division
                .iter()
                .map(|set| brute::members_of_mask(*set))
                .collect();
            highest = highest.max(sum(&sets));
        });
        let found = sum(&near::divide_items(&matrix, &[], size));
        assert!(found * 100 >= highest * 85, "{size}: {found} of {highest}");
    }
}

fn matrices(len: std::ops::RangeInclusive<usize>, most: u32) -> impl Strategy<Value = Matrix> {
    let scores = move |len: usize| prop::collection::vec(0..=most, len * len);
    let make = |(len, scores): (usize, Vec<u32>)| Matrix::new(len, |a, b| scores[a * len + b]);
    len.prop_flat_map(move |len| (Just(len), scores(len)))
        .prop_map(make)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn finds_what_trying_everything_finds_on_any_scores(
        matrix in prop_oneof![matrices(2..=9, 3), matrices(2..=9, 5000)],
        size in 2usize..9,
        required in prop::collection::btree_set(0usize..9, 0..3),
    ) {
        let required: Vec<usize> = required.into_iter().filter(|r| *r < matrix.len()).collect();
        prop_assume!(size <= matrix.len() && required.len() <= size);
        prop_assert_eq!(find_best_set(&matrix, &required, size), brute::search_all(&matrix, &required, size));
    }

    #[test]
    fn beyond_sixteen_no_exchange_improves_and_the_sum_is_at_least_the_mean(
        matrix in matrices(20..=20, 1000),
        size in prop::sample::select(vec![2usize, 4, 5, 10]),
    ) {
        let sets = near::divide_items(&matrix, &[], size);
        let sum: u64 = sets.iter().map(|set| matrix.sum_of_set(set)).sum();
        let all: Vec<usize> = (0..20).collect();
        prop_assert!(sum * 19 >= matrix.sum_of_set(&all) * (size as u64 - 1));
        let best_of = find_best_set(&matrix, &[], size);
        prop_assert!(sets.contains(&best_of));
    }

    #[test]
    fn gives_so_many_different_ones_with_all_that_are_required(
        matrix in matrices(1..=70, 2000),
        size in 0usize..70,
        required in prop::collection::btree_set(0usize..70, 0..5),
    ) {
        let required: Vec<usize> = required.into_iter().filter(|r| *r < matrix.len()).collect();
        prop_assume!(size <= matrix.len() && required.len() <= size);
        let found = find_best_set(&matrix, &required, size);
        prop_assert!(found.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(found.len(), size);
        prop_assert!(found.iter().all(|at| *at < matrix.len()));
        prop_assert!(required.iter().all(|one| found.contains(one)));
    }
}
