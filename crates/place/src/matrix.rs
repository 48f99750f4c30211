//! Score of every pair of a few items. The search reads scores only and does not know that the
//! items are cards.

/// Highest score of a pair. With this limit the sum over all pairs of [`crate::EXACT`] items fits
/// 32 bits.
const HIGHEST: u32 = 1 << 24;

/// Score of every pair of `len` items. Higher is better; an item has no score with itself.
///
/// ```
/// let matrix = place::Matrix::new(3, |a, b| if (a, b) == (0, 2) { 9 } else { 1 });
/// assert_eq!(matrix.score_of_pair(2, 0), 9);
/// assert_eq!(place::find_best_set(&matrix, &[], 2), [0, 2]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    len: usize,
    scores: Vec<u32>,
}

// === impl Matrix ===

impl Matrix {
    /// Calls `score` once for each pair, the lesser index first. Scores above 2²⁴ count as 2²⁴.
    pub fn new(len: usize, mut score: impl FnMut(usize, usize) -> u32) -> Self {
        let mut scores = vec![0; len * len];
        for a in 0..len {
            for b in a + 1..len {
                let score = score(a, b).min(HIGHEST);
                scores[a * len + b] = score;
                scores[b * len + a] = score;
            }
        }
        Self { len, scores }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the matrix has no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the score of a pair. Panics if an index is out of range.
    pub fn score_of_pair(&self, a: usize, b: usize) -> u32 {
        self.scores[a * self.len + b]
    }

    /// Returns the scores of one item with every item, itself included.
    pub fn row_scores(&self, a: usize) -> &[u32] {
        &self.scores[a * self.len..][..self.len]
    }

    /// Returns the sum of the scores over all pairs of a set.
    pub fn sum_of_set(&self, set: &[usize]) -> u64 {
        let pairs = set.iter().enumerate();
        pairs
            .flat_map(|(at, a)| {
                set[at + 1..]
                    .iter()
                    .map(|b| u64::from(self.score_of_pair(*a, *b)))
            })
            .sum()
    }
}
