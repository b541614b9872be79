//! Words and names with a realistic distribution: a few are frequent, most are rare.

use super::random::Random;

const NOUNS: &[&str] = &[
    "request",
    "user",
    "session",
    "token",
    "order",
    "invoice",
    "payment",
    "account",
    "message",
    "queue",
    "cache",
    "buffer",
    "index",
    "record",
    "schema",
    "table",
    "row",
    "column",
    "page",
    "cursor",
    "event",
    "handler",
    "worker",
    "task",
    "job",
    "schedule",
    "timer",
    "retry",
    "limit",
    "batch",
    "stream",
    "socket",
    "client",
    "server",
    "response",
    "header",
    "body",
    "route",
    "policy",
    "rule",
    "permission",
    "role",
    "group",
    "tenant",
    "region",
    "cluster",
    "node",
    "replica",
    "snapshot",
    "backup",
    "migration",
    "version",
    "release",
    "package",
    "module",
    "report",
    "metric",
    "counter",
    "histogram",
    "alert",
    "template",
    "layout",
    "widget",
    "theme",
    "image",
    "thumbnail",
    "upload",
    "archive",
    "folder",
    "path",
    "search",
    "query",
    "filter",
    "ranking",
    "score",
    "embedding",
    "document",
    "paragraph",
    "comment",
    "review",
    "rating",
    "coupon",
    "discount",
    "shipment",
    "address",
    "warehouse",
    "stock",
    "supplier",
    "customer",
    "contract",
    "signature",
    "certificate",
    "key",
    "secret",
    "password",
    "login",
    "profile",
];

const VERBS: &[&str] = &[
    "load",
    "save",
    "find",
    "parse",
    "encode",
    "decode",
    "validate",
    "normalize",
    "merge",
    "split",
    "append",
    "remove",
    "update",
    "create",
    "open",
    "close",
    "start",
    "stop",
    "send",
    "receive",
    "publish",
    "subscribe",
    "connect",
    "refresh",
    "rotate",
    "expire",
    "evict",
    "flush",
    "commit",
    "apply",
    "resolve",
    "collect",
    "count",
    "compare",
    "sort",
    "rank",
    "render",
    "format",
    "print",
    "compress",
    "encrypt",
    "verify",
    "sign",
    "approve",
    "reject",
    "cancel",
    "notify",
    "schedule",
];

const PROSE: &[&str] = &[
    "the", "of", "and", "a", "to", "is", "for", "when", "with", "before", "after", "only", "not",
    "every", "because", "until", "while", "from", "by", "once",
];

const SYLLABLES: &[&str] = &[
    "ba", "cor", "del", "fen", "gri", "hol", "jen", "kar", "lum", "mir", "nex", "pol", "qui",
    "ros", "sta", "tor", "ul", "ver", "wen", "zan",
];

/// The number of generated nouns.
const MADE_UP: usize = 20_000;

/// The naming convention of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamingConvention {
    /// `load_user`
    Snake,
    /// `loadUser`
    Camel,
    /// `LoadUser`
    Pascal,
}

/// Writes one text about a few topics, with occasional other words.
pub(crate) struct Writer {
    random: Random,
    topics: Vec<String>,
}

impl Writer {
    /// Chooses the topics of a text.
    pub(crate) fn new(mut random: Random, topics: usize) -> Self {
        let topics = (0..topics).map(|_| noun(&mut random)).collect();
        Self { random, topics }
    }

    /// Returns the random numbers of this text.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Returns a function name: a verb and one or two nouns.
    pub(crate) fn function(&mut self, case: NamingConvention) -> String {
        let verb = VERBS[self.random.skewed(VERBS.len())].to_owned();
        let mut words = vec![verb, self.noun()];
        if self.random.one_in(2) {
            words.push(self.noun());
        }
        joined(&words, case)
    }

    /// Returns a type or variable name: one or two nouns.
    pub(crate) fn thing(&mut self, case: NamingConvention) -> String {
        let mut words = vec![self.noun()];
        if self.random.one_in(2) {
            words.push(self.noun());
        }
        joined(&words, case)
    }

    /// Returns words of prose.
    pub(crate) fn phrase(&mut self, words: usize) -> String {
        let word = |position| match position % 3 {
            0 => self.random.one_of(PROSE).to_owned(),
            1 => self.noun(),
            _ => self.random.one_of(VERBS).to_owned(),
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    }

    /// Returns a noun, usually a topic of the text.
    pub(crate) fn noun(&mut self) -> String {
        if self.random.one_in(4) {
            return noun(&mut self.random);
        }
        self.topics[self.random.below(self.topics.len())].clone()
    }
}

/// Returns any noun, frequent or rare.
pub(crate) fn noun(random: &mut Random) -> String {
    match random.below(5) {
        0..3 => NOUNS[random.skewed(NOUNS.len())].to_owned(),
        _ => generated_word(random.skewed(MADE_UP)),
    }
}

/// Returns the word with a number.
fn generated_word(number: usize) -> String {
    let count = SYLLABLES.len();
    // One syllable is too short.
    let mut rest = number + count;
    let mut word = String::new();
    while rest > 0 {
        word += SYLLABLES[rest % count];
        rest /= count;
    }
    word
}

fn joined(words: &[String], case: NamingConvention) -> String {
    if case == NamingConvention::Snake {
        return words.join("_");
    }
    let mut name = String::new();
    for (position, word) in words.iter().enumerate() {
        if position == 0 && case == NamingConvention::Camel {
            name += word;
        } else {
            let (first, rest) = word.split_at(1);
            name += &first.to_uppercase();
            name += rest;
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_naming_convention() {
        let words = ["load".to_owned(), "user".to_owned()];
        assert_eq!(joined(&words, NamingConvention::Snake), "load_user");
        assert_eq!(joined(&words, NamingConvention::Camel), "loadUser");
        assert_eq!(joined(&words, NamingConvention::Pascal), "LoadUser");
    }

    #[test]
    fn there_are_many_rare_words() {
        let mut random = Random::new(1);
        let words: std::collections::HashSet<_> = (0..50_000).map(|_| noun(&mut random)).collect();
        assert!(words.len() > 5_000, "{}", words.len());
    }
}
