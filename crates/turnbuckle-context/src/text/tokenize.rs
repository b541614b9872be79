//! Tokenization of text for FTS5, and conversion of any text to an FTS5 query.
//!
//! FTS5 splits `snake_case` and `a::b` but not `camelCase`. Identifiers that it does not split are also indexed in parts
//! (`identifier_parts`), and searched both ways (`fts_query`). Scripts without spaces between words are indexed and searched as
//! pairs of characters.

use std::collections::HashSet;

use super::identifiers::names;
pub(crate) use super::identifiers::{NameToken, split_identifier};

/// Maximum number of terms in a query: the most significant ones. More terms take time without improving the results.
pub(super) const MAX_TERMS: usize = 24;

/// Converts any text to a valid FTS5 query: an OR of quoted terms.
///
/// A name is searched as a whole (as a phrase if FTS5 splits it) and by its parts, and so is text in double quotes or
/// backticks. Stop words and single letters are omitted unless the text contains nothing else. Of a long text the 24 most
/// significant terms are used: phrases first, then long and mixed words; numbers and hashes last.
///
/// Returns `None` for a text without words.
pub(crate) fn fts_query(text: &str) -> Option<String> {
    let quoted: Vec<String> = significant_terms(text)
        .iter()
        .map(|term| format!("\"{term}\""))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// Returns the terms of [`fts_query`] in lower case, without quotes. A term has one or more words.
pub(crate) fn significant_terms(text: &str) -> Vec<String> {
    most_significant(terms(text), MAX_TERMS)
}

/// Returns the parts of all identifiers in a text that FTS5 does not split, in lower case, for an additional column.
pub(crate) fn identifier_parts(text: &str) -> String {
    let mut joined = String::with_capacity(text.len() / 4);
    for piece in pieces(text) {
        for part in parts(piece) {
            if !joined.is_empty() {
                joined.push(' ');
            }
            joined.push_str(&part);
        }
    }
    joined
}

/// Returns the distinct words of a text in lower case, with the parts of names, without stop words.
pub(crate) fn plain_words(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    pieces(text)
        .flat_map(|piece| {
            let whole = piece.to_lowercase();
            std::iter::once(whole).chain(parts(piece))
        })
        .filter(|word| !is_stop_word(word) && !is_short(word))
        .filter(|word| seen.insert(word.clone()))
        .collect()
}

/// Returns the names in a text: identifiers, module paths and file paths.
pub(crate) fn name_tokens(text: &str) -> impl Iterator<Item = NameToken<'_>> {
    names(text)
}

/// Maximum length of a word; a longer one is a key or encoded data.
const MAX_WORD_BYTES: usize = 96;
/// Maximum number of words in a phrase; longer phrases rarely match exactly.
const MAX_PHRASE_WORDS: usize = 8;
/// Number of words at the end of a longer path that are searched, too: the start may differ on another machine.
const PATH_SUFFIX_WORDS: usize = 3;

/// Returns all distinct terms, in the order of the text.
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

/// Returns the most significant terms, in the original order.
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

/// Estimates how rare a term is. In a long stack trace this selects the names of failing functions.
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
    /// Stop words and single letters, used if the text contains nothing else.
    others: Vec<String>,
    seen: HashSet<String>,
}

impl TermList {
    /// Adds a name or quotation that FTS5 splits into several words.
    fn phrase(&mut self, words: &[&str]) {
        let fits = words.iter().all(|word| word.len() <= MAX_WORD_BYTES);
        if (2..=MAX_PHRASE_WORDS).contains(&words.len()) && fits {
            self.add(words.join(" ").to_lowercase());
        }
    }

    /// Adds a word, its parts, and the parts as a phrase, which matches other naming conventions.
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

/// Returns the texts in double quotes or backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    ['"', '`']
        .into_iter()
        .flat_map(|mark| text.split(mark).skip(1).step_by(2))
}

/// Returns the runs of letters and digits in a text, which are the tokens of FTS5 except for very new scripts.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !is_word(sign))
        .filter(|piece| piece.chars().any(char::is_alphanumeric))
}

/// Returns the parts of a token in lower case; empty for a plain word, a hash or an address.
pub(super) fn parts(piece: &str) -> Vec<String> {
    if piece.chars().any(is_unspaced) {
        return pairs(piece);
    }
    let parts = split_identifier(piece);
    if parts.len() < 2 || is_hash(piece) {
        return Vec::new();
    }
    let parts = parts.into_iter().filter(|part| !is_short(part));
    parts.map(str::to_lowercase).collect()
}

/// Returns all pairs of adjacent characters.
fn pairs(piece: &str) -> Vec<String> {
    let signs = piece.chars();
    signs
        .clone()
        .zip(signs.skip(1))
        .map(|(first, second)| [first, second].iter().collect())
        .collect()
}

/// Returns whether a word is too short to be searched: one letter or digit. One Chinese character is a word.
pub(super) fn is_short(word: &str) -> bool {
    let mut signs = word.chars();
    match (signs.next(), signs.next()) {
        (Some(sign), None) => !is_unspaced(sign),
        (None, _) => true,
        _ => false,
    }
}

/// Returns whether this is a hexadecimal number rather than a word.
pub(super) fn is_hash(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let numbers = digits.bytes().filter(u8::is_ascii_digit).count();
    digits.len() >= 8 && numbers > 0 && digits.bytes().all(|sign| sign.is_ascii_hexdigit())
}

pub(super) fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || is_accent(sign)
}

/// Returns whether this is a combining accent, as in decomposed text.
pub(super) fn is_accent(sign: char) -> bool {
    matches!(sign, '\u{300}'..='\u{36f}')
}

/// Returns whether this belongs to a script without spaces between words: Chinese, Japanese, Korean.
fn is_unspaced(sign: char) -> bool {
    matches!(sign,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Sorted for binary search.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "being", "but", "by", "can", "could", "did", "didn", "do", "does", "doesn", "doing", "don",
    "for", "from", "had", "has", "have", "having", "he", "her", "here", "him", "his", "how", "i",
    "if", "in", "into", "is", "isn", "it", "its", "itself", "let", "ll", "may", "me", "might",
    "my", "of", "on", "onto", "or", "our", "ours", "please", "re", "s", "shall", "she", "should",
    "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "too", "us", "ve", "very", "was", "wasn", "we", "were", "what",
    "when", "where", "whether", "which", "while", "who", "whom", "whose", // quoted
    "why", "will", "with", "would", "you", "your",
];

/// Returns whether a lower-case word is a common English word without significance for a search.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| is_stop_word(word)));
    }
}
