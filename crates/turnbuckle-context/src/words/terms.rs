//! What to look for, and what of it tells most.

use std::collections::HashSet;

use super::{
    name::names,
    scan::{is_hash, is_short, parts, pieces},
    stop::is_stop_word,
};

/// A longer word is a key or a picture in letters; nobody looks for it by its letters.
const MAX_WORD_BYTES: usize = 96;
/// More words in a row than these are not found as a phrase, because something between them changed.
const MAX_PHRASE_WORDS: usize = 8;
/// The end of a longer path is asked for too: the beginning may be of another machine.
const PATH_SUFFIX_WORDS: usize = 3;

/// Everything that can be asked for, each once, in the order of the text.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut list = TermList::default();
    for quoted in quoted(text) {
        list.phrase(&pieces(quoted).collect::<Vec<_>>());
    }
    for name in names(text) {
        let words: Vec<&str> = name.pieces().collect();
        list.phrase(&words);
        if words.len() > PATH_SUFFIX_WORDS {
            list.phrase(&words[words.len() - PATH_SUFFIX_WORDS..]);
        }
        for word in words {
            list.word(word);
        }
    }
    list.into_terms()
}

/// The terms that tell most, still in their order.
pub(super) fn most_significant(terms: Vec<String>, most: usize) -> Vec<String> {
    if terms.len() <= most {
        return terms;
    }
    let mut ranked: Vec<(usize, String)> = terms.into_iter().enumerate().collect();
    ranked.sort_by_key(|(at, term)| (std::cmp::Reverse(significance(term)), *at));
    ranked.truncate(most);
    ranked.sort_by_key(|(at, _)| *at);
    ranked.into_iter().map(|(_, term)| term).collect()
}

/// How rare a term looks. Of thousands of lines of a stack trace this keeps the names of what failed.
fn significance(term: &str) -> usize {
    let length = term.chars().count();
    let digits = term.chars().filter(char::is_ascii_digit).count();
    if is_hash(term) || digits * 2 > length {
        return 1;
    }
    let phrase = if term.contains(' ') { 4 } else { 0 };
    length.min(16) + phrase
}

#[derive(Default)]
struct TermList {
    significant: Vec<String>,
    /// Stop words and single letters, for a text that has nothing else.
    others: Vec<String>,
    seen: HashSet<String>,
}

impl TermList {
    /// A name or a quotation that FTS5 sees as several words.
    fn phrase(&mut self, words: &[&str]) {
        let fits = words.iter().all(|word| word.len() <= MAX_WORD_BYTES);
        if (2..=MAX_PHRASE_WORDS).contains(&words.len()) && fits {
            self.add(words.join(" ").to_lowercase());
        }
    }

    /// One word as it is, and in parts; and its parts in a row, as another language would write the name.
    fn word(&mut self, word: &str) {
        let parts = parts(word);
        if word.len() <= MAX_WORD_BYTES {
            self.add(word.to_lowercase());
            if word.is_ascii() {
                self.phrase(&parts.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
        for part in parts {
            if part.len() <= MAX_WORD_BYTES {
                self.add(part);
            }
        }
    }

    fn add(&mut self, term: String) {
        if self.seen.contains(&term) {
            return;
        }
        self.seen.insert(term.clone());
        if is_stop_word(&term) || is_short(&term) {
            self.others.push(term);
        } else {
            self.significant.push(term);
        }
    }

    fn into_terms(self) -> Vec<String> {
        if self.significant.is_empty() {
            self.others
        } else {
            self.significant
        }
    }
}

/// What stands between two double quotes or two backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    ['"', '`']
        .into_iter()
        .flat_map(|mark| text.split(mark).skip(1).step_by(2))
}
