//! Scores of a ranked list of files.

/// Files of an answer that count.
pub(crate) const LOOKED_AT: usize = 10;
/// A file of at least this grade ends the search of a reader.
const HELPS: u32 = 2;

/// The scores of one result list.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Worth {
    /// nDCG@10 with gains of 2^grade - 1.
    pub(crate) ndcg: f64,
    /// The reciprocal rank of the first file that clearly helps, MRR@10 once it is averaged.
    pub(crate) mrr: f64,
}

impl Worth {
    /// Scores a result list, given the grade of each of its files in order and all grades of the query.
    pub(crate) fn of(answer: &[u32], all: &[u32]) -> Self {
        let mut ideal = all.to_vec();
        ideal.sort_unstable_by(|one, other| other.cmp(one));
        let best = gain(&ideal);
        let helps = |grade: &u32| *grade >= HELPS.min(ideal.first().copied().unwrap_or(HELPS));
        let first = answer.iter().take(LOOKED_AT).position(helps);
        Self {
            ndcg: if best > 0.0 { gain(answer) / best } else { 0.0 },
            mrr: first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        }
    }

    /// The average of several.
    pub(crate) fn mean(all: impl IntoIterator<Item = Self>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0_u32);
        for worth in all {
            sum.ndcg += worth.ndcg;
            sum.mrr += worth.mrr;
            count += 1;
        }
        let count = f64::from(count.max(1));
        Self {
            ndcg: sum.ndcg / count,
            mrr: sum.mrr / count,
        }
    }
}

fn gain(grades: &[u32]) -> f64 {
    let ranked = (2_u32..).zip(grades.iter().take(LOOKED_AT));
    let gains =
        ranked.map(|(rank, grade)| (2_f64.powf(f64::from(*grade)) - 1.0) / f64::from(rank).log2());
    gains.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_order_is_worth_one() {
        let worth = Worth::of(&[3, 2, 1], &[1, 3, 2]);
        assert_eq!(
            worth,
            Worth {
                ndcg: 1.0,
                mrr: 1.0
            }
        );
    }

    #[test]
    fn the_only_right_file_on_rank_three_is_worth_half() {
        let worth = Worth::of(&[0, 0, 1], &[1]);
        assert_eq!((worth.ndcg, worth.mrr), (0.5, 1.0 / 3.0));
    }

    #[test]
    fn what_is_only_related_is_no_first_hit() {
        assert_eq!(Worth::of(&[1, 3], &[3, 1]).mrr, 0.5);
    }

    #[test]
    fn what_comes_after_the_tenth_is_worth_nothing() {
        let mut answer = vec![0; 10];
        answer.push(3);
        assert_eq!(Worth::of(&answer, &[3]), Worth::default());
        assert_eq!(Worth::of(&[], &[3]), Worth::default());
    }

    #[test]
    fn a_mean_of_nothing_is_nothing() {
        assert_eq!(Worth::mean([]), Worth::default());
    }
}
