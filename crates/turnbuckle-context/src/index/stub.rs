//! Stands in for the redactor and the words until they are there.

use std::borrow::Cow;

/// Takes secrets out of text.
#[derive(Debug)]
pub struct Redactor;

/// Text without its secrets.
#[derive(Debug)]
pub struct Redacted<'t> {
    /// What is left.
    pub text: Cow<'t, str>,
    /// What was taken out.
    pub findings: Vec<Finding>,
}

/// A secret that was taken out.
#[derive(Debug)]
pub struct Finding {
    /// The rule that found it.
    pub rule: std::sync::Arc<str>,
}

impl Redactor {
    /// The rules that come with the program.
    pub fn standard() -> &'static Self {
        &Self
    }

    /// Replaces each secret by the name of the rule that found it.
    pub fn redact<'t>(&self, text: &'t str) -> Redacted<'t> {
        let secret = "stub-secret";
        let findings = text.matches(secret).map(|_| Finding {
            rule: "stub".into(),
        });
        Redacted {
            findings: findings.collect(),
            text: Cow::Owned(text.replace(secret, "[REDACTED:stub]")),
        }
    }
}

pub(super) fn identifier_parts(text: &str) -> String {
    let mut parts = String::new();
    for word in text.split(|sign: char| !sign.is_alphanumeric()) {
        let humps = word
            .char_indices()
            .skip(1)
            .filter(|(_, sign)| sign.is_uppercase());
        let mut begin = 0;
        for (at, _) in humps {
            parts.push_str(&word[begin..at].to_lowercase());
            parts.push(' ');
            begin = at;
        }
        if begin > 0 {
            parts.push_str(&word[begin..].to_lowercase());
            parts.push(' ');
        }
    }
    parts
}
