//! Containers that come and go: always the same ones for the same seed.

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A container comes that wants so many.
    Comes(usize),
    /// One of those that run goes: its place among them.
    Goes(usize),
    /// A container comes and does not fit.
    Waits,
}

/// Makes up events. Who asks keeps the sizes: nodes that are told the same events always have the
/// same number free, whatever each hands out.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    state: u64,
    /// The most that a container wants.
    most: usize,
    free: usize,
    held: Vec<usize>,
}

/// A node: what is free, and who has what.
#[derive(Clone, Debug)]
pub(super) struct Node<T> {
    /// In order.
    pub(super) free: Vec<T>,
    held: Vec<Vec<T>>,
}

// === impl Traffic ===

impl Traffic {
    /// For a node with so many units, of which a container wants up to `most`.
    pub(super) fn new(seed: u64, units: usize, most: usize) -> Self {
        Self {
            state: seed,
            most,
            free: units,
            held: Vec::new(),
        }
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 11).unwrap_or_default() % end.max(1)
    }

    /// Half of them come and half of them go, as long as they can.
    pub(super) fn next(&mut self) -> Event {
        let (size, goes) = (1 + self.below(self.most), self.below(2) == 0);
        if goes && !self.held.is_empty() {
            let at = self.below(self.held.len());
            self.free += self.held.remove(at);
            return Event::Goes(at);
        }
        if size > self.free {
            return Event::Waits;
        }
        self.free -= size;
        self.held.push(size);
        Event::Comes(size)
    }

    /// The same things in another order.
    pub(super) fn shuffled<T: Clone>(&mut self, things: &[T]) -> Vec<T> {
        let mut things = things.to_vec();
        for at in (1..things.len()).rev() {
            let other = self.below(at + 1);
            things.swap(at, other);
        }
        things
    }
}

// === impl Node ===

impl<T: Ord + Clone> Node<T> {
    /// A node where all of these are free.
    pub(super) fn new(mut free: Vec<T>) -> Self {
        free.sort();
        let held = Vec::new();
        Self { free, held }
    }

    /// Hands these out.
    pub(super) fn take(&mut self, chosen: Vec<T>) {
        self.free.retain(|one| !chosen.contains(one));
        self.held.push(chosen);
    }

    /// Takes back what one of the containers has.
    pub(super) fn give_back(&mut self, at: usize) {
        self.free.extend(self.held.remove(at));
        self.free.sort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_come_than_fit_and_never_go_who_are_not_there() {
        let mut traffic = Traffic::new(7, 9, 4);
        let mut node = Node::new((0..9).collect());
        let mut seen = [0; 3];
        for _ in 0..2000 {
            match traffic.next() {
                Event::Comes(size) => {
                    let chosen = node.free[..size].to_vec();
                    node.take(chosen);
                    seen[0] += 1;
                }
                Event::Goes(at) => {
                    node.give_back(at);
                    seen[1] += 1;
                }
                Event::Waits => seen[2] += 1,
            }
            assert!(node.free.is_sorted() && node.free.len() == traffic.free);
        }
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
    }

    #[test]
    fn a_shuffled_list_has_the_same_things() {
        let mut traffic = Traffic::new(3, 0, 1);
        let things: Vec<u32> = (0..20).collect();
        let mut shuffled = traffic.shuffled(&things);
        assert_ne!(shuffled, things);
        shuffled.sort_unstable();
        assert_eq!(shuffled, things);
    }
}
