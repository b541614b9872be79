//! Synonyms and stems of words.
//!
//! A query often uses other words than the code: it mentions a folder, and the code contains `dir`. The list has general
//! programming vocabulary only, nothing specific to one project. A word may be on several lines; its synonyms are the words
//! on these lines, and not the synonyms of its synonyms.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

const SYNONYM_GROUPS: &str = include_str!("synonyms.txt");

static SYNONYMS: LazyLock<HashMap<&'static str, BTreeSet<&'static str>>> = LazyLock::new(|| {
    let mut table: HashMap<_, BTreeSet<_>> = HashMap::new();
    for group in SYNONYM_GROUPS.lines().filter(|line| !line.starts_with('#')) {
        for word in group.split(' ') {
            let others = group.split(' ').filter(|other| *other != word);
            table.entry(stem(word)).or_default().extend(others);
        }
    }
    table
});

/// Returns the synonyms of the words with this stem, in alphabetical order.
pub(super) fn synonyms(stem: &str) -> impl Iterator<Item = &'static str> {
    SYNONYMS.get(stem).into_iter().flatten().copied()
}

/// Removes common English endings, so that the words of paths and queries can be compared: `routes`, `routing` and `route`
/// become `rout`.
///
/// This is simpler than the stemmer of FTS5, which cannot return a stem.
pub(crate) fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.ends_with("ss") {
        return word;
    }
    let endings = [
        "ings", "ing", "ers", "er", "ors", "or", "ies", "es", "ed", "s",
    ];
    let stem = strip_any_suffix(&endings, word).map_or(word, strip_doubled_consonant);
    strip_any_suffix(&["e", "y"], stem).unwrap_or(stem)
}

/// Removes the first of these endings that leaves at least three bytes.
fn strip_any_suffix<'a>(endings: &[&str], word: &'a str) -> Option<&'a str> {
    let mut stems = endings
        .iter()
        .filter_map(|ending| word.strip_suffix(*ending));
    stems.find(|stem| stem.len() >= 3)
}

/// Turns `mapp`, the stem of `mapping`, into `map`.
fn strip_doubled_consonant(stem: &str) -> &str {
    match stem.as_bytes() {
        [.., _, one, other] if one == other && !b"aeiouls".contains(one) => &stem[..stem.len() - 1],
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_on_one_line_are_synonyms() {
        let of = |word| synonyms(stem(word)).collect::<Vec<_>>();
        assert_eq!(of("folders"), ["dir", "directory"]);
        assert!(of("retrying").contains(&"backoff"));
        assert!(of("zebra").is_empty());
    }

    #[test]
    fn every_line_is_words_with_single_spaces() {
        for line in SYNONYM_GROUPS.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let is_word = |word: &&str| !word.is_empty() && word.chars().all(char::is_alphabetic);
            assert!(words.len() > 1 && words.iter().all(is_word), "{line}");
        }
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["route", "routes", "routing", "router", "routers", "routed"][..],
            &["map", "maps", "mapping", "mapper", "mapped"],
            &["extract", "extractor", "extractors", "extracting"],
            &["query", "queries", "querying"],
            &["user", "users"],
            &["parse", "parser", "parsing"],
            &["middleware", "middlewares"],
        ] {
            let stems: Vec<&str> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
    }

    #[test]
    fn short_words_keep_their_endings() {
        for word in ["is", "bed", "yes", "ring", "class", "größe", ""] {
            assert_eq!(stem(word), word);
        }
    }
}
