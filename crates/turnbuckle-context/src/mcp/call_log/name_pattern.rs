//! Patterns for names: `*` matches any characters, `?` matches one.
//!
//! Patterns are compiled to regular expressions, which match in linear time. `globset` is not used: its `?` matches one byte, and
//! names can contain other scripts.

use std::fmt;

use regex::Regex;

use crate::ContextError;

/// Maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 200;

/// A pattern for names.
#[derive(Clone, Debug)]
pub(crate) struct NamePattern {
    text: String,
    regex: Regex,
}

impl NamePattern {
    /// Parses a pattern. Every text of at most [`MAX_PATTERN_BYTES`] is valid, except the empty one.
    pub(crate) fn new(pattern: &str) -> Result<Self, ContextError> {
        match pattern.len() {
            0 => Err(ContextError::invalid(
                "the pattern is empty; pass `*` to match everything",
            )),
            1..=MAX_PATTERN_BYTES => Ok(Self::compile(pattern)),
            _ => Err(ContextError::invalid(format!(
                "the pattern is longer than {MAX_PATTERN_BYTES} bytes; use `*` for the parts that vary"
            ))),
        }
    }

    /// Returns the pattern that every name matches.
    pub(crate) fn everything() -> Self {
        Self::compile("*")
    }

    fn compile(pattern: &str) -> Self {
        let regex = regex::escape(pattern)
            .replace(r"\*", ".*")
            .replace(r"\?", ".");
        Self {
            text: pattern.to_owned(),
            regex: Regex::new(&format!("(?s)^{regex}$")).expect("an escaped text is valid"),
        }
    }

    /// Returns whether a name matches.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// Returns the pattern as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_are_wildcards() {
        let cases = [
            ("*", "", true),
            ("*", "anything", true),
            ("checkpoint_*", "checkpoint_save", true),
            ("checkpoint_*", "skill_save", false),
            ("*_save", "skill_save", true),
            ("*_save", "skill_saved", false),
            ("*e*e*", "remediation_search", true),
            ("s?ve", "save", true),
            ("s?ve", "sve", false),
            ("?", "é", true),
            ("??", "é", false),
            ("save", "save", true),
            ("save", "Save", false),
            ("**", "x", true),
            ("a.[b]*", "a.[b]c\nd", true),
            ("a.b", "axb", false),
        ];
        for (pattern, name, expected) in cases {
            let glob = NamePattern::new(pattern).unwrap();
            assert_eq!(glob.matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_matches_quickly() {
        let glob = NamePattern::new(&"*a".repeat(100)).unwrap();
        assert!(!glob.matches(&"a".repeat(10_000).replace("aaaa", "aaab")));
    }

    #[test]
    fn empty_and_too_long_patterns_are_rejected() {
        assert!(NamePattern::new("").is_err());
        assert!(NamePattern::new(&"a".repeat(201)).is_err());
    }
}
