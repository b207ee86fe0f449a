//! Random numbers that a seed repeats.

/// A generator of random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The generator of a seed: `CASS_TEST_SEED` if that is set, else `default`. The seed is printed.
    pub fn seeded(default: u64) -> Self {
        let seed = std::env::var("CASS_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default);
        println!("CASS_TEST_SEED={seed}");
        Random(seed)
    }

    /// A generator of its own, say for another thread.
    pub fn fork(&mut self) -> Self {
        Random(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}
