//! Seed phrases of wallets (BIP 39): at least twelve consecutive words from its list, numbered or not.

use std::{collections::HashSet, ops::Range, sync::LazyLock};

/// The English list of BIP 39, sorted.
static SEED_WORDS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("seed-words.txt").lines().collect());

const MIN_WORDS: usize = 12;
/// Maximum number of bytes between two words: `", "`, `\n12. `.
const MAX_GAP_BYTES: usize = 8;

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut run = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let is_letter = bytes[at].is_ascii_alphabetic();
        let same = |byte: &&u8| byte.is_ascii_alphabetic() == is_letter;
        let end = at + bytes[at..].iter().take_while(same).count();
        if is_letter && (3..=8).contains(&(end - at)) {
            run.push(at..end);
        } else if is_letter || !is_gap(&bytes[at..end]) {
            end_run(text, &mut run, &mut found);
        }
        at = end;
    }
    end_run(text, &mut run, &mut found);
    found
}

fn is_gap(bytes: &[u8]) -> bool {
    let is_of_one = |byte: &u8| {
        byte.is_ascii_whitespace() || byte.is_ascii_digit() || b".,:;()[]\"'|*-\\".contains(byte)
    };
    bytes.len() <= MAX_GAP_BYTES && bytes.iter().all(is_of_one)
}

/// Adds the phrases in a run of short words.
fn end_run(text: &str, run: &mut Vec<Range<usize>>, found: &mut Vec<Range<usize>>) {
    if run.len() >= MIN_WORDS {
        for words in run.split(|word| !is_seed_word(&text[word.clone()])) {
            if let [first, .., last] = words
                && words.len() >= MIN_WORDS
                && looks_random(text, words)
            {
                found.push(first.start..last.end);
            }
        }
    }
    run.clear();
}

fn is_seed_word(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    SEED_WORDS.binary_search(&&*word).is_ok()
}

/// Returns whether the words look random. A part of the list is sorted, and a sequence of `true` and `false` repeats words.
fn looks_random(text: &str, words: &[Range<usize>]) -> bool {
    let word = |range: &Range<usize>| text[range.clone()].to_ascii_lowercase();
    let different: HashSet<_> = words.iter().map(word).collect();
    !words.is_sorted_by_key(word) && different.len() * 4 >= words.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_complete() {
        assert_eq!(SEED_WORDS.len(), 2048);
        assert!(SEED_WORDS.is_sorted());
        assert!(SEED_WORDS.iter().all(|word| (3..=8).contains(&word.len())));
    }

    #[test]
    fn a_part_of_the_list_is_not_a_phrase() {
        assert!(find(&SEED_WORDS.join("\n")).is_empty());
        let phrase = [&SEED_WORDS[30..36], &SEED_WORDS[3..9]].concat().join(" ");
        let found = find(&phrase).pop();
        assert_eq!(found, Some(0..phrase.len()));
        assert!(find(&"true, false, false, ".repeat(8)).is_empty());
    }
}
