//! The words of texts, as FTS5 makes them with `porter unicode61 remove_diacritics 2`.
//!
//! Candidates have to be the same as with SQLite, because the quality of search is measured with its rules. PostgreSQL's own text
//! search has other words, so the words of items and terms are made here, and PostgreSQL only stores and compares them.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    sync::LazyLock,
};

use sha2::{Digest as _, Sha256};

use super::porter;
use crate::{memory::PreparedItem, memory_store::sqlite::items::tags, owner::hex};

/// Longer words are stored as their hash: PostgreSQL limits the length of a word.
const MAX_WORD_BYTES: usize = 500;
/// Maximum number of bytes of all words of an item. PostgreSQL accepts 1 MiB, with some bytes for alignment.
const MAX_WORDS_BYTES: usize = 900_000;

/// The words of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemWords {
    /// The different words, as a literal of the type `tsvector`.
    pub(super) vector: String,
    /// All words in their order, each between spaces, and each member in a line: to find phrases.
    pub(super) phrases: String,
}

impl ItemWords {
    /// Returns the words of an item with this key.
    ///
    /// The key is one of its words, so that one index finds the items of one partition and kind that contain a term.
    pub(super) fn new(key: &str, item: &PreparedItem) -> Self {
        let members = [
            &*item.item.title,
            &item.item.body,
            &item.item.detail,
            &tags(&item.item),
            &item.words,
        ];
        let mut phrases = String::new();
        let mut different = BTreeSet::new();
        let mut bytes = 0;
        for member in members {
            phrases.push_str("\n ");
            for_each_word(member, |word| {
                phrases.push_str(word);
                phrases.push(' ');
                if bytes < MAX_WORDS_BYTES && different.insert(word.to_owned()) {
                    bytes += word.len() + 4;
                }
            });
        }
        let mut vector = quote(key);
        for word in different {
            vector.push(' ');
            vector.push_str(&quote(&word));
        }
        Self { vector, phrases }
    }
}

/// A search for items that contain terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WordQuery {
    /// A literal of the type `tsquery`; empty if nothing can match.
    pub(super) query: String,
    /// The phrases to find in [`ItemWords::phrases`], one per line.
    pub(super) phrases: String,
}

impl WordQuery {
    /// Returns the search for items with this key that contain all terms.
    pub(super) fn new<'t>(key: &str, terms: impl IntoIterator<Item = &'t str>) -> Self {
        let mut query = Self {
            query: quote(key),
            phrases: String::new(),
        };
        for term in terms {
            let mut words = Vec::new();
            for_each_word(term, |word| words.push(word.to_owned()));
            if words.is_empty() {
                return Self::default();
            }
            for word in &words {
                let _ = write!(query.query, " & {}", quote(word));
            }
            if words.len() > 1 {
                if !query.phrases.is_empty() {
                    query.phrases.push('\n');
                }
                let _ = write!(query.phrases, " {} ", words.join(" "));
            }
        }
        query
    }
}

/// Quotes a word, which contains neither quotes nor backslashes.
fn quote(word: &str) -> String {
    format!("'{word}'")
}

/// Calls back with each word of a text, in its order.
fn for_each_word(text: &str, mut found: impl FnMut(&str)) {
    let rules = &*UNICODE61;
    let mut word = String::new();
    let mut in_word = false;
    for character in text.chars().chain([' ']) {
        match rules.class(character) {
            CharacterClass::Word(folded) => {
                in_word = true;
                word.push(folded);
            }
            CharacterClass::Mark if in_word => {}
            CharacterClass::Mark | CharacterClass::Separator => {
                if in_word {
                    found(&stored_form(&mut word));
                }
                in_word = false;
            }
        }
    }
}

/// Returns the stem of a word, as it is stored. One that is too long or not text is written as digits after a dot, which no other
/// word has.
fn stored_form(word: &mut String) -> String {
    let mut stem = std::mem::take(word).into_bytes();
    porter::stem(&mut stem);
    if stem.len() > MAX_WORD_BYTES {
        return format!(".{}", hex(&Sha256::digest(&stem)));
    }
    String::from_utf8(stem).unwrap_or_else(|error| format!(".{}", hex(error.as_bytes())))
}

static UNICODE61: LazyLock<Unicode61> =
    LazyLock::new(|| Unicode61::parse(include_str!("tokens/unicode61.txt")));

/// What a character does to words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharacterClass {
    /// It is part of a word, as this character.
    Word(char),
    /// It is dropped within a word, and separates words otherwise.
    Mark,
    /// It separates words.
    Separator,
}

/// The rules of the tokenizer `unicode61`.
#[derive(Default)]
struct Unicode61 {
    /// Ranges of code points in words.
    words: Vec<(u32, u32)>,
    marks: Vec<u32>,
    folding: HashMap<char, char>,
}

impl Unicode61 {
    fn class(&self, character: char) -> CharacterClass {
        if character.is_ascii() {
            return if character.is_ascii_alphanumeric() {
                CharacterClass::Word(character.to_ascii_lowercase())
            } else {
                CharacterClass::Separator
            };
        }
        let code = u32::from(character);
        if self.marks.contains(&code) {
            return CharacterClass::Mark;
        }
        let after = self.words.partition_point(|(first, _)| *first <= code);
        match after.checked_sub(1).map(|at| self.words[at]) {
            Some((_, last)) if code <= last => {
                CharacterClass::Word(*self.folding.get(&character).unwrap_or(&character))
            }
            _ => CharacterClass::Separator,
        }
    }

    fn parse(table: &str) -> Self {
        let code = |text: &str| u32::from_str_radix(text, 16).expect("the table has code points");
        let mut rules = Self::default();
        let mut section = "";
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            for entry in line.split(' ') {
                match section {
                    "[words]" => {
                        let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
                        rules.words.push((code(first), code(last)));
                    }
                    "[marks]" => rules.marks.push(code(entry)),
                    _ => {
                        let mut characters = entry.chars();
                        let folded = characters.next().expect("an entry is not empty");
                        rules.folding.extend(characters.map(|from| (from, folded)));
                    }
                }
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests;
