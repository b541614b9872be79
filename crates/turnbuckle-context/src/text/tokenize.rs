//! Words as they are looked for: the names of code taken apart, and any text at all made a question that FTS5 understands.
//!
//! FTS5 parts `snake_case` and `a::b` by itself and leaves `camelCase` whole. What it leaves whole is indexed a second
//! time, in parts (`identifier_parts`), and is asked for both ways (`fts_query`). The writing systems that put no
//! space between words are indexed and asked for in pairs of signs.

use std::collections::HashSet;

use super::identifiers::names;
pub use super::identifiers::{NameToken, split_identifier};

/// A question of more terms would cost more time and find nothing else: those that tell most are asked for.
pub(super) const MAX_TERMS: usize = 24;

/// Makes any text a question to FTS5 that is never a syntax error: an OR of quoted terms.
///
/// A name is asked for as a whole (a phrase, if FTS5 parts it), and by each of its parts; so is what stands in double
/// quotes or backticks. Stop words and single letters are left out unless nothing else is there. Of a long text
/// the 24 terms are taken that tell most: phrases first, then long words and mixed ones; numbers and hashes come last.
///
/// Returns `None` for a text without any word.
pub fn fts_query(text: &str) -> Option<String> {
    let quoted: Vec<String> = significant_terms(text)
        .iter()
        .map(|term| format!("\"{term}\""))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// Lists the terms that [`fts_query`] asks for, each of one word or more, in lower case and without quotes.
pub fn significant_terms(text: &str) -> Vec<String> {
    most_significant(terms(text), MAX_TERMS)
}

/// Lists the parts of all names in a text that FTS5 would not part itself, in lower case, to be indexed beside it.
///
/// ```
/// # use turnbuckle_context::text::tokenize::identifier_parts;
/// assert_eq!(identifier_parts("fn open_file(p: HTTPServer)"), "http server");
/// ```
pub fn identifier_parts(text: &str) -> String {
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

/// Lists the words of a text in lower case, names also in parts, each once, without stop words.
pub fn plain_words(text: &str) -> Vec<String> {
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

/// Lists the names in a text: what looks like an identifier, a path through modules, or a path of a file.
pub fn name_tokens(text: &str) -> impl Iterator<Item = NameToken<'_>> {
    names(text)
}

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

/// The runs of letters and digits in a text: the tokens of FTS5, but for its idea of the newest scripts.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|sign: char| !is_word(sign))
        .filter(|piece| piece.chars().any(char::is_alphanumeric))
}

/// The parts of one piece, in lower case; nothing if it is a plain word, or a hash or an address, which has none.
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

/// Every two neighbouring signs.
fn pairs(piece: &str) -> Vec<String> {
    let signs = piece.chars();
    signs
        .clone()
        .zip(signs.skip(1))
        .map(|(first, second)| [first, second].iter().collect())
        .collect()
}

/// Whether a word says too little to be looked for: one letter or digit. One Chinese character is a word.
pub(super) fn is_short(word: &str) -> bool {
    let mut signs = word.chars();
    match (signs.next(), signs.next()) {
        (Some(sign), None) => !is_unspaced(sign),
        (None, _) => true,
        _ => false,
    }
}

/// Whether this is a number in hexadecimal digits rather than a word.
pub(super) fn is_hash(word: &str) -> bool {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let numbers = digits.bytes().filter(u8::is_ascii_digit).count();
    digits.len() >= 8 && numbers > 0 && digits.bytes().all(|sign| sign.is_ascii_hexdigit())
}

pub(super) fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || is_accent(sign)
}

/// Whether this is a mark on the letter before it, as decomposed text has them.
pub(super) fn is_accent(sign: char) -> bool {
    matches!(sign, '\u{300}'..='\u{36f}')
}

/// Whether this belongs to a script that puts no space between words: Chinese, Japanese, Korean.
fn is_unspaced(sign: char) -> bool {
    matches!(sign,
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Sorted, so that a word is found by halving.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been",
    "being", "but", "by", "can", "could", "did", "didn", "do", "does", "doesn", "doing", "don",
    "for", "from", "had", "has", "have", "having", "he", "her", "here", "him", "his", "how", "i",
    "if", "in", "into", "is", "isn", "it", "its", "itself", "let", "ll", "may", "me", "might",
    "my", "of", "on", "onto", "or", "our", "ours", "please", "re", "s", "shall", "she", "should",
    "so", "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "those", "to", "too", "us", "ve", "very", "was", "wasn", "we", "were", "what",
    "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your",
];

/// Whether a word in lower case is in every English sentence and tells nothing.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_so_that_every_word_is_found() {
        assert!(STOP_WORDS.is_sorted());
        assert!(STOP_WORDS.iter().all(|word| is_stop_word(word)));
    }
}
