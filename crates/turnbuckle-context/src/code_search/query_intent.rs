//! Derives from the words of a query what it searches for.

use std::collections::{BTreeSet, HashSet};

use super::{
    path_signals,
    synonyms::{stem, synonyms},
};
use crate::text::{tokenize, tokenize::NameToken};

/// Maximum number of synonyms in one query.
const MAX_SYNONYMS: usize = 48;

/// An analyzed query text.
pub(super) struct QueryIntent {
    /// FTS5 query; `None` if the text contains no word.
    pub(super) fts: Option<String>,
    /// FTS5 query for synonyms of the words; `None` if the query is a single name.
    pub(super) synonym_fts: Option<String>,
    /// Stems of the words.
    pub(super) words: HashSet<String>,
    /// Stems of the synonyms.
    pub(super) synonyms: HashSet<String>,
    /// Names that a file may define.
    pub(super) names: Vec<String>,
    /// True if the query is a single word or name, and therefore most likely a definition.
    pub(super) is_name: bool,
    /// File paths in the query.
    pub(super) paths: Vec<String>,
    /// True if the query asks for tests, examples or benchmarks.
    pub(super) wants_tests: bool,
    /// True if the query asks for documentation.
    pub(super) wants_documentation: bool,
}

impl QueryIntent {
    pub(super) fn new(text: &str) -> Self {
        let plain = tokenize::plain_words(text);
        let all: Vec<NameToken<'_>> = tokenize::name_tokens(text).collect();
        let is_name = all.len() == 1;
        let may_be_defined = |name: &&NameToken<'_>| is_name || looks_like_definition(name);
        let stems: HashSet<String> = plain.iter().map(|word| stem(word).to_owned()).collect();
        let related_words = if is_name {
            BTreeSet::new()
        } else {
            synonyms_of(&stems)
        };
        Self {
            fts: tokenize::fts_query(text),
            synonym_fts: or_query(&related_words),
            synonyms: related_words
                .iter()
                .map(|word| stem(word).to_owned())
                .collect(),
            names: all
                .iter()
                .filter(may_be_defined)
                .map(defined_name)
                .collect(),
            is_name,
            paths: all.iter().filter(may_be_path).map(path).collect(),
            wants_tests: plain.iter().any(|word| path_signals::means_tests(word)),
            wants_documentation: plain
                .iter()
                .any(|word| path_signals::means_documentation(word)),
            words: stems,
        }
    }

    /// Returns whether the query requests one of these names, which are separated by spaces.
    pub(super) fn defines_requested_name(&self, defs: &str) -> bool {
        let mut defined = defs.split_whitespace();
        defined.any(|defined| {
            let last = defined.rsplit([':', '.', '#']).next().unwrap_or(defined);
            self.names.iter().any(|name| self.is_same(name, last))
        })
    }

    /// Compares names. In a sentence the case matters: `Error` is a type, "error" is a word.
    fn is_same(&self, name: &str, defined: &str) -> bool {
        name == defined || self.is_name && name.eq_ignore_ascii_case(defined)
    }
}

/// Returns the synonyms of the words, without the words themselves.
fn synonyms_of(stems: &HashSet<String>) -> BTreeSet<&'static str> {
    let all = stems.iter().flat_map(|stem| synonyms(stem));
    all.filter(|word| !stems.contains(stem(word))).collect()
}

/// Returns an FTS5 query for any of the words. They come from our own list and do not need quoting.
fn or_query(words: &BTreeSet<&str>) -> Option<String> {
    let words: Vec<&str> = words.iter().take(MAX_SYNONYMS).copied().collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// Returns whether a name in a sentence refers to code: by its form, or by an initial capital if it is not a stop word.
fn looks_like_definition(name: &NameToken<'_>) -> bool {
    let word = name.as_str();
    let is_capital = word.starts_with(char::is_uppercase);
    name.is_identifier() || is_capital && !tokenize::is_stop_word(&word.to_lowercase())
}

fn defined_name(name: &NameToken<'_>) -> String {
    name.last().to_owned()
}

/// Returns whether a name can be a path or file name. A false positive is harmless: no path ends with it.
fn may_be_path(name: &&NameToken<'_>) -> bool {
    name.is_path() || name.as_str().contains('.')
}

fn path(name: &NameToken<'_>) -> String {
    name.as_str().replace('\\', "/")
}
