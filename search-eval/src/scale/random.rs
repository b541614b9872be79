//! Numbers that look random and are the same in every run.

/// A stream of numbers: `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// Starts the stream that belongs to a number.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    /// Returns a number below a limit, each as likely as the other.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let wide = u128::from(self.next()) * limit as u128;
        usize::try_from(wide >> 64).expect("it is below the limit")
    }

    /// Returns a number in a range with both ends.
    pub(crate) fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// Returns a number below a limit, where small ones are more likely, as words are in a language (Zipf, Mandelbrot).
    pub(crate) fn skewed(&mut self, limit: usize) -> usize {
        // With this offset the most frequent word of a large vocabulary is one of two hundred.
        const OFFSET: f64 = 30.0;
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = OFFSET * (limit as f64 / OFFSET + 1.0).powf(share) - OFFSET;
        (rank as usize).min(limit - 1)
    }

    /// Picks one of some things, each as likely as the other.
    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, things: &[&'a T]) -> &'a T {
        things[self.below(things.len())]
    }

    /// Says yes once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
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
    fn numbers_stay_in_their_range_and_are_the_same_again() {
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
