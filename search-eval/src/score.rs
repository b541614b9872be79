//! Scores of a ranked list of files.

/// Number of results that are scored.
pub(crate) const RESULT_LIMIT: usize = 10;
/// Minimum grade of a file that answers the query.
const HELPFUL_GRADE: u32 = 2;

/// The scores of one result list.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SearchScore {
    /// nDCG@10 with gains of 2^grade - 1.
    pub(crate) ndcg: f64,
    /// The reciprocal rank of the first file that clearly helps, MRR@10 once it is averaged.
    pub(crate) mrr: f64,
}

impl SearchScore {
    /// Scores a result list, given the grade of each of its files in order and all grades of the query.
    pub(crate) fn new(results: &[u32], all: &[u32]) -> Self {
        let mut ideal = all.to_vec();
        ideal.sort_unstable_by(|one, other| other.cmp(one));
        let best = gain(&ideal);
        let helps = |grade: &u32| {
            *grade >= HELPFUL_GRADE.min(ideal.first().copied().unwrap_or(HELPFUL_GRADE))
        };
        let first = results.iter().take(RESULT_LIMIT).position(helps);
        Self {
            ndcg: if best > 0.0 {
                gain(results) / best
            } else {
                0.0
            },
            mrr: first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        }
    }

    /// Returns the mean of several scores.
    pub(crate) fn mean(all: impl IntoIterator<Item = Self>) -> Self {
        let (mut sum, mut count) = (Self::default(), 0_u32);
        for score in all {
            sum.ndcg += score.ndcg;
            sum.mrr += score.mrr;
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
    let ranked = (2_u32..).zip(grades.iter().take(RESULT_LIMIT));
    let gains =
        ranked.map(|(rank, grade)| (2_f64.powf(f64::from(*grade)) - 1.0) / f64::from(rank).log2());
    gains.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_order_scores_one() {
        let score = SearchScore::new(&[3, 2, 1], &[1, 3, 2]);
        assert_eq!(
            score,
            SearchScore {
                ndcg: 1.0,
                mrr: 1.0
            }
        );
    }

    #[test]
    fn the_only_relevant_file_on_rank_three_scores_one_half() {
        let score = SearchScore::new(&[0, 0, 1], &[1]);
        assert_eq!((score.ndcg, score.mrr), (0.5, 1.0 / 3.0));
    }

    #[test]
    fn a_related_file_does_not_count_for_mrr() {
        assert_eq!(SearchScore::new(&[1, 3], &[3, 1]).mrr, 0.5);
    }

    #[test]
    fn results_after_the_tenth_score_zero() {
        let mut answer = vec![0; 10];
        answer.push(3);
        assert_eq!(SearchScore::new(&answer, &[3]), SearchScore::default());
        assert_eq!(SearchScore::new(&[], &[3]), SearchScore::default());
    }

    #[test]
    fn the_mean_of_no_scores_is_zero() {
        assert_eq!(SearchScore::mean([]), SearchScore::default());
    }
}
