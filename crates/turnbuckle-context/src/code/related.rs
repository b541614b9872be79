//! Words that programmers use for the same thing.
//!
//! Who asks does not know the words of the code: they ask for a folder, and the code says `dir`. General vocabulary of
//! programming only; what is particular to one project has no place here. A word may be on several lines, and stands
//! for those it shares a line with, not for those further on.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use super::stem::stem;

const SYNONYM_GROUPS: &str = include_str!("related.txt");

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

/// Lists the words that stand for a word of which this is the stem, in order.
pub(super) fn synonyms(stem: &str) -> impl Iterator<Item = &'static str> {
    SYNONYMS.get(stem).into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_line_stand_for_each_other() {
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
}
