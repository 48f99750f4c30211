//! How good it is to have two things together, for every pair of a few things. The search reads
//! this and nothing else: what the numbers stand for is not its business.

/// The highest score of a pair: sums over all pairs of [`crate::EXACT`] things fit 32 bits.
const HIGHEST: u32 = 1 << 24;

/// The score of every pair of `len` things; higher is better, a thing with itself has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    len: usize,
    scores: Vec<u32>,
}

// === impl Matrix ===

impl Matrix {
    /// Asks `score` once for each pair, the lesser index first. Scores above 2²⁴ count as 2²⁴.
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

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The score of a pair.
    pub fn get(&self, a: usize, b: usize) -> u32 {
        self.scores[a * self.len + b]
    }

    /// The scores of one thing with each.
    pub fn row(&self, a: usize) -> &[u32] {
        &self.scores[a * self.len..][..self.len]
    }

    /// The sum over all pairs of a set.
    pub fn sum(&self, set: &[usize]) -> u64 {
        let pairs = set.iter().enumerate();
        pairs
            .flat_map(|(at, a)| set[at + 1..].iter().map(|b| u64::from(self.get(*a, *b))))
            .sum()
    }
}
