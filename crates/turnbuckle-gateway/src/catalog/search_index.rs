//! The words of the tools' names and descriptions, and their ranking for a query.

use std::collections::{BTreeMap, HashMap, HashSet};

use turnbuckle_protocol::jsonrpc::RawObject;

use crate::catalog::merged_list::MergedList;

/// Maximum number of words of a description.
const MAX_WORDS: usize = 200;
/// Maximum number of words of a query.
const MAX_QUERY_WORDS: usize = 16;
/// Minimum length of a word that stands for the words it begins with.
const MIN_PREFIX: usize = 3;

/// How much a word counts in a name, and in a title or description.
const NAME_WEIGHT: f64 = 3.0;
const TEXT_WEIGHT: f64 = 1.0;
/// How much the beginning of a word counts, compared with the whole word.
const PREFIX_FACTOR: f64 = 0.5;

/// The words of all tools.
pub(crate) struct SearchIndex {
    tools: usize,
    /// The tools with each word, and how much it counts there.
    words: BTreeMap<String, Vec<(usize, f64)>>,
}

impl SearchIndex {
    pub(crate) fn new(list: &MergedList) -> Self {
        let mut words: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
        for at in 0..list.len() {
            let mut weights: HashMap<String, f64> = HashMap::new();
            let definition = RawObject::parse(list.definition(at)).ok();
            let text = |member: &str| {
                let text = definition.as_ref()?.string(member).ok()??;
                Some(text.into_owned())
            };
            let texts = [text("title"), text("description")];
            for word in texts
                .iter()
                .flatten()
                .flat_map(|text| words_of(text))
                .take(MAX_WORDS)
            {
                weights.entry(word).or_insert(TEXT_WEIGHT);
            }
            for word in words_of(list.name(at)) {
                weights.insert(word, NAME_WEIGHT);
            }
            for (word, weight) in weights {
                words.entry(word).or_default().push((at, weight));
            }
        }
        Self {
            tools: list.len(),
            words,
        }
    }

    /// Returns the positions of the tools that have words of a query, the best first.
    pub(crate) fn find(&self, query: &str) -> Vec<usize> {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let mut seen = HashSet::new();
        let query = words_of(query).filter(|word| seen.insert(word.clone()));
        for word in query.take(MAX_QUERY_WORDS) {
            let mut best: HashMap<usize, f64> = HashMap::new();
            for (known, tools) in self.words.range(word.clone()..) {
                if !known.starts_with(&word) {
                    break;
                }
                let factor = if *known == word {
                    1.0
                } else if word.chars().count() >= MIN_PREFIX {
                    PREFIX_FACTOR
                } else {
                    continue;
                };
                for (tool, weight) in tools {
                    let best = best.entry(*tool).or_default();
                    *best = best.max(factor * weight);
                }
            }
            // A word that few tools have says more.
            let rarity = (1.0 + as_f64(self.tools) / as_f64(best.len().max(1))).ln();
            for (tool, weight) in best {
                *scores.entry(tool).or_default() += rarity * weight;
            }
        }
        let mut found: Vec<_> = scores.into_iter().collect();
        found.sort_by(|(a, a_score), (b, b_score)| b_score.total_cmp(a_score).then(a.cmp(b)));
        found.into_iter().map(|(tool, _)| tool).collect()
    }
}

fn as_f64(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

/// Returns the words of a text in lower case. `getIssue`, `get_issue` and `get issue` have the same ones.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in text.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_style_of_names() {
        for text in [
            "getIssue",
            "get_issue",
            "get-issue",
            "GET issue",
            " get  ISSUE ",
        ] {
            assert_eq!(
                words_of(text).collect::<Vec<_>>(),
                ["get", "issue"],
                "{text}"
            );
        }
        assert_eq!(words_of("").count(), 0);
    }
}
