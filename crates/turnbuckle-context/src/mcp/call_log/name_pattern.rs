//! Patterns for names: `*` stands for any letters, `?` for one.

use std::fmt;

use crate::ContextError;

/// Longer ones are no patterns that somebody wrote.
const MAX_PATTERN_BYTES: usize = 200;

/// A pattern for names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern(String);

impl NamePattern {
    /// Reads a pattern. Every text of moderate length is one.
    pub(crate) fn new(pattern: &str) -> Result<Self, ContextError> {
        match pattern.len() {
            0 => Err(ContextError::invalid(
                "the pattern is empty; `*` matches everything",
            )),
            1..=MAX_PATTERN_BYTES => Ok(Self(pattern.to_owned())),
            _ => Err(ContextError::invalid(format!(
                "the pattern is longer than {MAX_PATTERN_BYTES} bytes; use `*` for what may vary"
            ))),
        }
    }

    /// The pattern that every name matches.
    pub(crate) fn everything() -> Self {
        Self("*".to_owned())
    }

    /// Says whether a name matches. Takes at most the product of both lengths.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let (pattern, name) = (self.0.as_bytes(), name.as_bytes());
        let (mut at, mut seen) = (0, 0);
        // Where to go on if what follows the last star does not fit: the star, and what it stands for so far.
        let mut retry = None;
        while seen < name.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    retry = Some((at, seen));
                    at += 1;
                }
                Some(b'?') => {
                    at += 1;
                    seen = after_letter(name, seen);
                }
                Some(letter) if *letter == name[seen] => {
                    at += 1;
                    seen += 1;
                }
                _ => {
                    let Some((star, taken)) = retry else {
                        return false;
                    };
                    retry = Some((star, taken + 1));
                    at = star + 1;
                    seen = taken + 1;
                }
            }
        }
        pattern[at..].iter().all(|rest| *rest == b'*')
    }

    /// The pattern as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The place after the letter that begins here; a letter may have several bytes.
fn after_letter(name: &[u8], at: usize) -> usize {
    let rest = name[at + 1..].iter();
    at + 1 + rest.take_while(|byte| (0x80..0xC0).contains(*byte)).count()
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_letters() {
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
        ];
        for (pattern, name, expected) in cases {
            let glob = NamePattern::new(pattern).unwrap();
            assert_eq!(glob.matches(name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn a_pattern_of_stars_is_no_trap() {
        let glob = NamePattern::new(&"*a".repeat(100)).unwrap();
        assert!(!glob.matches(&"a".repeat(10_000).replace("aaaa", "aaab")));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(NamePattern::new("").is_err());
        assert!(NamePattern::new(&"a".repeat(201)).is_err());
    }
}
