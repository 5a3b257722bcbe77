//! The order in which the workgroups of a launch begin.

use crate::choices::Choices;

/// Where each workgroup stands in the order.
pub(super) struct Order {
    seed: Option<u64>,
    blocks: u64,
    window: u64,
}

impl Order {
    /// Without a seed the order of the numbers. With one, each `window` workgroups that follow each other are in an order of
    /// their own, the same for the same seed. A launch whose workgroups wait for lower ones only gets on as long as so many
    /// can have begun at once.
    pub(super) fn new(seed: Option<u64>, blocks: u64, window: u64) -> Self {
        Self { seed, blocks, window: window.max(1) }
    }

    /// The workgroup that begins after `place` others, of which there must be one.
    pub(super) fn at(&self, place: u64) -> u64 {
        let Some(seed) = self.seed else { return place };
        let first = self.least_from(place);
        first + permuted(seed ^ Choices(first).next(), (self.blocks - first).min(self.window), place - first)
    }

    /// A number below which no workgroup begins after `place` others or later.
    pub(super) fn least_from(&self, place: u64) -> u64 {
        if self.seed.is_some() { place - place % self.window } else { place }
    }
}

/// Where a permutation of `0..n` that `key` chooses takes `i`.
fn permuted(key: u64, n: u64, i: u64) -> u64 {
    let bits = u64::BITS - (n - 1).leading_zeros();
    let mask = (1u64 << bits) - 1;
    let mut at = i;
    // Each step is one-to-one in so many bits; whoever leaves `0..n` goes on until back.
    loop {
        let mut choices = Choices(key);
        for _ in 0..3 {
            at ^= at >> (bits / 2).max(1);
            at = at.wrapping_mul(choices.next() | 1).wrapping_add(choices.next() >> 32) & mask;
        }
        if at < n {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(seed: Option<u64>, blocks: u64, window: u64) -> Vec<u64> {
        let order = Order::new(seed, blocks, window);
        (0..blocks).map(|place| order.at(place)).collect()
    }

    #[test]
    fn every_workgroup_begins_once_and_none_outside_its_window() {
        for blocks in (1..70).chain([1000, 1025]) {
            for window in [1, 2, 5, 16, 64, 2000] {
                assert!(all(None, blocks, window).into_iter().eq(0..blocks));
                for seed in [0, 1, u64::MAX] {
                    let mut numbers = all(Some(seed), blocks, window);
                    assert_eq!(numbers, all(Some(seed), blocks, window));
                    let order = Order::new(Some(seed), blocks, window);
                    for (place, number) in (0..).zip(&numbers) {
                        assert_eq!(number / window, place / window);
                        assert!(*number >= order.least_from(place));
                    }
                    numbers.sort_unstable();
                    assert!(numbers.into_iter().eq(0..blocks), "{blocks} {window} {seed}");
                }
            }
        }
    }

    #[test]
    fn every_workgroup_comes_first_with_some_seed() {
        for blocks in [2, 3, 8, 33] {
            let mut first = vec![0u32; blocks as usize];
            for seed in 0..100 * blocks {
                first[Order::new(Some(seed), blocks, 64).at(0) as usize] += 1;
            }
            assert!(first.iter().all(|n| (50..200).contains(n)), "{first:?}");
        }
        // Windows of the same size are in different orders.
        let numbers = all(Some(1), 128, 64);
        assert!((0..64).any(|i| numbers[i] + 64 != numbers[64 + i]));
    }
}
