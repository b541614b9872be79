//! What a question asks for, as far as its words show.

use std::collections::{BTreeSet, HashSet};

use super::paths;
use super::related::related;
use super::stem::stem;
use crate::words::{self, Name};

/// Many words stand for many more, of which all tell less.
const MOST_RELATED: usize = 48;

/// A text that something is looked for with.
pub(super) struct Question {
    /// For FTS5; nothing if the text has no word.
    pub(super) fts: Option<String>,
    /// For FTS5: the words that its words stand for; nothing if only a name is asked for.
    pub(super) related_fts: Option<String>,
    /// The stems of its words.
    pub(super) words: HashSet<String>,
    /// The stems of the words that they stand for.
    pub(super) related: HashSet<String>,
    /// Names that something may define.
    pub(super) names: Vec<String>,
    /// Whether it is one word or one name, and so most likely something that is defined.
    pub(super) is_name: bool,
    /// Paths of files in it.
    pub(super) paths: Vec<String>,
    /// Whether tests, examples or benchmarks are asked for.
    pub(super) wants_tests: bool,
    /// Whether documentation is asked for.
    pub(super) wants_prose: bool,
}

impl Question {
    pub(super) fn new(text: &str) -> Self {
        let plain = words::plain_words(text);
        let all: Vec<Name<'_>> = words::names(text).collect();
        let is_name = all.len() == 1;
        let wanted = |name: &&Name<'_>| is_name || looks_defined(name);
        let stems: HashSet<String> = plain.iter().map(|word| stem(word).to_owned()).collect();
        let related = if is_name {
            BTreeSet::new()
        } else {
            related_to(&stems)
        };
        Self {
            fts: words::fts_query(text),
            related_fts: any_of(&related),
            related: related.iter().map(|word| stem(word).to_owned()).collect(),
            names: all.iter().filter(wanted).map(defined_name).collect(),
            is_name,
            paths: all.iter().filter(may_be_path).map(path).collect(),
            wants_tests: plain.iter().any(|word| paths::means_tests(word)),
            wants_prose: plain.iter().any(|word| paths::means_prose(word)),
            words: stems,
        }
    }

    /// Whether one of these names, which are parted by spaces, is asked for.
    pub(super) fn asks_for_one_of(&self, defs: &str) -> bool {
        let mut defined = defs.split_whitespace();
        defined.any(|defined| {
            let last = defined.rsplit([':', '.', '#']).next().unwrap_or(defined);
            self.names.iter().any(|name| self.is_same(name, last))
        })
    }

    /// In a sentence the case matters: `Error` is a type, and an error is not.
    fn is_same(&self, name: &str, defined: &str) -> bool {
        name == defined || self.is_name && name.eq_ignore_ascii_case(defined)
    }
}

/// The words that these stand for, but for themselves.
fn related_to(stems: &HashSet<String>) -> BTreeSet<&'static str> {
    let all = stems.iter().flat_map(|stem| related(stem));
    all.filter(|word| !stems.contains(stem(word))).collect()
}

/// A question to FTS5. These are words of our own, so there is nothing in them to be quoted.
fn any_of(words: &BTreeSet<&str>) -> Option<String> {
    let words: Vec<&str> = words.iter().take(MOST_RELATED).copied().collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

/// Whether a name in a sentence is one of code: by its form, or by a capital that no stop word would have.
fn looks_defined(name: &Name<'_>) -> bool {
    let word = name.as_str();
    let is_capital = word.starts_with(char::is_uppercase);
    name.is_identifier() || is_capital && !words::is_stop_word(&word.to_lowercase())
}

fn defined_name(name: &Name<'_>) -> String {
    name.last().to_owned()
}

/// A path, or the name of a file: a name with a dot that is none ends no path.
fn may_be_path(name: &&Name<'_>) -> bool {
    name.is_path() || name.as_str().contains('.')
}

fn path(name: &Name<'_>) -> String {
    name.as_str().replace('\\', "/")
}
