//! Pseudo-random numbers, equal in every run.

/// A stream of numbers: `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// Creates a stream from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Returns a uniformly distributed number below a limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.next()) * limit as u128;
        usize::try_from(wide >> 64).expect("it is below the limit")
    }

    /// Returns a number in an inclusive range.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// Returns a number below a limit with a Zipf-Mandelbrot distribution, like the words of a language.
    pub(crate) fn skewed(&mut self, limit: usize) -> usize {
        // With this offset the most frequent word of a large vocabulary is one of two hundred.
        const OFFSET: f64 = 30.0;
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = OFFSET * (limit as f64 / OFFSET + 1.0).powf(share) - OFFSET;
        (rank as usize).min(limit - 1)
    }

    /// Returns one of the entries, chosen uniformly.
    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, things: &[&'a T]) -> &'a T {
        things[self.below(things.len())]
    }

    /// Returns `true` with a probability of one in `times`.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_range_and_reproducible() {
        let draw = || {
            let mut random = Random::new(7);
            (0..1000)
                .map(|_| (random.below(10), random.skewed(100), random.between(3, 5)))
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        assert!(draw().iter().all(|&(plain, skewed, between)| {
            plain < 10 && skewed < 100 && (3..=5).contains(&between)
        }));
        let small = draw().iter().filter(|(_, skewed, _)| *skewed < 10).count();
        assert!((150..250).contains(&small), "{small}");
    }
}
