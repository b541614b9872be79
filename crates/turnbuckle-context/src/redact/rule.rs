//! Rules of `rules.toml`.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};

use super::{placeholders, prefixed_block, seed_phrase, table};

/// A rule that finds one kind of secret.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretRule {
    #[serde(deserialize_with = "shared")]
    pub(super) id: Arc<str>,
    #[expect(dead_code, reason = "documents the rule")]
    description: String,
    pub(super) keywords: Vec<String>,
    #[serde(default)]
    pub(super) scope: RuleScope,
    #[serde(default)]
    pattern: String,
    /// The finder of a rule without a pattern.
    pub(super) finder: Option<SecretFinder>,
    group: Option<usize>,
    #[serde(default)]
    entropy: f32,
    guess: Option<HeuristicKind>,
    /// True if the pattern has a prefix of its vendor, so that no other text has this form.
    #[serde(default)]
    vendor: bool,
    /// Compiled when a keyword is first found: most rules are never used.
    #[serde(skip)]
    regex: OnceLock<Regex>,
}

/// The part of the text that a pattern is applied to after a keyword was found.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum RuleScope {
    #[default]
    Line,
    Text,
}

/// The kind of harmless values that the pattern also matches.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HeuristicKind {
    Word,
    Name,
    Identifier,
    Phrase,
    Url,
}

/// A match and the secret in it.
pub(super) struct SecretMatch {
    pub(super) whole: Range<usize>,
    pub(super) secret: Range<usize>,
}

impl SecretRule {
    /// Replaces `(?&name)` in the pattern by the named part. Parts may contain names of other parts.
    pub(super) fn expand_parts(&mut self, parts: &BTreeMap<String, String>) {
        while let Some((before, (name, after))) = self
            .pattern
            .split_once("(?&")
            .and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
        {
            let part = parts.get(name).map_or("", String::as_str);
            self.pattern = format!("{before}{part}{after}");
        }
    }

    /// Returns every secret of this kind in a part of a text.
    pub(super) fn find(&self, text: &str, part: Range<usize>) -> Vec<SecretMatch> {
        match self.finder {
            Some(finder) => self.find_by(finder, text, part),
            None => self.find_by_pattern(text, part).collect(),
        }
    }

    fn find_by(&self, finder: SecretFinder, text: &str, part: Range<usize>) -> Vec<SecretMatch> {
        let offset = part.start;
        let moved = |range: Range<usize>| range.start + offset..range.end + offset;
        let ranges = finder.find(&text[part]).into_iter().map(moved);
        let secrets = ranges.filter(|range| self.is_secret(&text[range.clone()]));
        let found = |secret: Range<usize>| SecretMatch {
            whole: secret.clone(),
            secret,
        };
        secrets.map(found).collect()
    }

    fn find_by_pattern<'a>(
        &'a self,
        text: &'a str,
        part: Range<usize>,
    ) -> impl Iterator<Item = SecretMatch> + 'a {
        let offset = part.start;
        let moved = move |span: regex::Match<'_>| span.start() + offset..span.end() + offset;
        self.regex()
            .captures_iter(&text[part])
            .filter_map(move |captures| {
                let whole = moved(captures.get_match());
                let group = match self.group {
                    Some(group) => captures.get(group),
                    None => captures.iter().skip(1).flatten().next(),
                };
                let secret = group.map_or_else(|| whole.clone(), moved);
                self.is_secret(&text[secret.clone()])
                    .then_some(SecretMatch { whole, secret })
            })
    }

    fn is_secret(&self, value: &str) -> bool {
        // A real key can contain `example` or `0123456789`, and the caller could not notice that it was left.
        if self.vendor {
            return true;
        }
        let plain = match self.guess {
            None => false,
            Some(HeuristicKind::Word) => placeholders::is_word(value),
            Some(HeuristicKind::Name) => {
                placeholders::is_word(value) || placeholders::is_name(value)
            }
            Some(HeuristicKind::Identifier) => {
                placeholders::is_word(value) || placeholders::is_identifier(value)
            }
            Some(HeuristicKind::Phrase) => placeholders::is_sentence(value),
            Some(HeuristicKind::Url) => placeholders::is_url_part(value),
        };
        !plain && !placeholders::is_placeholder(value) && entropy(value) >= self.entropy
    }

    pub(super) fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            // Unicode classes are slow, and nearly every secret is ASCII.
            let mut builder = RegexBuilder::new(&self.pattern);
            builder.unicode(false).multi_line(true);
            builder.build().expect("a test compiles every rule")
        })
    }
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Arc::from)
}

/// Code that finds secrets with a form that a pattern cannot describe. Each finder reads the text once.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SecretFinder {
    PrefixedBlock,
    SeedPhrase,
    Table,
}

impl SecretFinder {
    /// Returns ranges that may be secrets, in the order of the text.
    pub(super) fn find(self, text: &str) -> Vec<Range<usize>> {
        match self {
            Self::PrefixedBlock => prefixed_block::find(text),
            Self::SeedPhrase => seed_phrase::find(text),
            Self::Table => table::find(text),
        }
    }
}

/// Returns the lines of a text with their offsets, without line ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split('\n').map(move |line| {
        let start = offset;
        offset += line.len() + 1;
        (start, line)
    })
}

/// Returns the Shannon entropy in bits per byte. Random text has more than words.
pub(super) fn entropy(text: &str) -> f32 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let total = text.len() as f32;
    let of = |count: &u32| {
        let share = *count as f32 / total;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_has_more_entropy_than_words() {
        assert_eq!(entropy(""), 0.0);
        assert_eq!(entropy("aaaa"), 0.0);
        assert!((entropy("abcd") - 2.0).abs() < 1e-6);
        assert!(entropy("a8Zk2Qp9Lx0Vt7Rm") > entropy("passwordpassword"));
    }
}
