//! Replaces secrets in text, before it is stored and again before it is returned.
//!
//! A secret is replaced by `[REDACTED:rule-id]`. The rules are in `redact/rules.toml`. The text may be a note or a whole file.
//! Line numbers do not change.

mod placeholders;
mod prefixed_block;
mod rule;
mod seed_phrase;
mod table;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, LazyLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind, StartKind};
use serde::Deserialize;
use serde_json::Value;

use self::rule::{RuleScope, SecretRule};

const MARKER: &str = "[REDACTED:";
/// Maximum number of passes. Replacing one secret can reveal another, which is rare.
const MAX_PASSES: usize = 4;

static STANDARD: LazyLock<Redactor> = LazyLock::new(|| {
    Redactor::from_rules(include_str!("redact/rules.toml")).expect("a test reads these rules")
});

/// Replaces secrets in text.
#[derive(Debug)]
pub struct Redactor {
    rules: Vec<SecretRule>,
    /// Finds the keywords of all rules, and existing markers, in one pass.
    keywords: AhoCorasick,
    /// The rules of each keyword. The marker is the last keyword and has none.
    rules_of: Vec<Vec<usize>>,
    /// Rules without a keyword, which are applied to every text.
    always: Vec<usize>,
}

/// A text without secrets.
#[derive(Clone, Debug)]
pub struct RedactedText<'t> {
    /// The text; borrowed if nothing was replaced.
    pub text: Cow<'t, str>,
    /// The replaced secrets, in the order of the text.
    pub findings: Vec<SecretFinding>,
}

/// A replaced secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SecretFinding {
    /// The id of the rule, for example `github-pat`.
    pub rule: Arc<str>,
}

/// The position of a secret, and the rank of its rule.
#[derive(Clone, Debug)]
struct SecretSpan {
    range: Range<usize>,
    rule: usize,
}

/// Result of scanning a text.
struct ScanResult {
    spans: Vec<SecretSpan>,
    /// Number of scanned bytes, summed over the rules: at most the length of the text for each rule.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests bound the effort by it"))]
    scanned: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    parts: BTreeMap<String, String>,
    rule: Vec<SecretRule>,
}

impl Redactor {
    /// Returns the redactor with the built-in rules.
    pub fn standard() -> &'static Self {
        &STANDARD
    }

    fn from_rules(rules: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let RuleFile { parts, mut rule } = toml::from_str(rules)?;
        rule.iter_mut().for_each(|rule| rule.expand_parts(&parts));
        let rules = rule;
        let mut by_keyword = BTreeMap::<String, Vec<usize>>::new();
        for (number, rule) in rules.iter().enumerate() {
            for keyword in &rule.keywords {
                let known = by_keyword.entry(keyword.to_ascii_lowercase()).or_default();
                known.push(number);
            }
        }
        let has_no_keyword = |number: &usize| rules[*number].keywords.is_empty();
        let always = (0..rules.len()).filter(has_no_keyword).collect();
        let (mut keywords, mut rules_of): (Vec<_>, Vec<_>) = by_keyword.into_iter().unzip();
        keywords.push(MARKER.to_owned());
        rules_of.push(Vec::new());
        let keywords = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .start_kind(StartKind::Unanchored)
            .build(keywords)?;
        Ok(Self {
            rules,
            keywords,
            rules_of,
            always,
        })
    }

    /// Replaces every secret in a text. Redacting the result again does not change it.
    pub fn redact<'t>(&self, text: &'t str) -> RedactedText<'t> {
        let mut redacted = RedactedText {
            text: Cow::Borrowed(text),
            findings: Vec::new(),
        };
        for _ in 0..MAX_PASSES {
            let spans = merge(self.find(&redacted.text).spans);
            if spans.is_empty() {
                break;
            }
            let next = self.replace(&redacted.text, &spans);
            redacted.findings.extend(next.findings);
            redacted.text = Cow::Owned(next.text.into_owned());
        }
        redacted
    }

    /// Searches for keywords, and near each one for the secrets of its rules.
    fn find(&self, text: &str) -> ScanResult {
        let mut spans = Vec::new();
        let mut scanned = 0;
        // The end of the text scanned by each rule, so that a line with many keywords is scanned once.
        let mut seen = vec![0; self.rules.len()];
        let mut markers = MarkerSpans::default();
        let mut line = 0..0;
        for hit in self.keywords.find_overlapping_iter(text) {
            let rules = &self.rules_of[hit.pattern().as_usize()];
            if rules.is_empty() {
                markers.record(text, hit.start());
                continue;
            }
            if !line.contains(&hit.start()) {
                line = line_around(text, hit.range());
            }
            for &number in rules {
                let rule = &self.rules[number];
                if hit.start() < seen[number] {
                    continue;
                }
                let part = match rule.scope {
                    RuleScope::Line => line.clone(),
                    RuleScope::Text => 0..text.len(),
                };
                seen[number] = part.end;
                scanned += part.len();
                let found = rule.find(text, part).into_iter();
                spans.extend(found.map(|found| (number, found)));
            }
        }
        for &number in &self.always {
            scanned += text.len();
            let found = self.rules[number].find(text, 0..text.len()).into_iter();
            spans.extend(found.map(|found| (number, found)));
        }
        let allowed = spans.into_iter().filter(|(_, found)| {
            !markers.contains(found.whole.start) && !markers.overlaps(&found.secret)
        });
        let span = |(rule, found): (usize, rule::SecretMatch)| SecretSpan {
            range: found.secret,
            rule,
        };
        let spans = allowed.map(span).collect();
        ScanResult { spans, scanned }
    }

    /// Replaces each span by a marker and the line breaks of the span.
    fn replace<'t>(&self, text: &'t str, spans: &[SecretSpan]) -> RedactedText<'t> {
        let id = |span: &SecretSpan| &self.rules[span.rule].id;
        let finding = |span: &SecretSpan| SecretFinding {
            rule: Arc::clone(id(span)),
        };
        let findings = spans.iter().map(finding).collect();
        if spans.is_empty() {
            let text = Cow::Borrowed(text);
            return RedactedText { text, findings };
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for span in spans {
            out.push_str(&text[done..span.range.start]);
            out.extend([MARKER, id(span), "]"]);
            let breaks = text[span.range.clone()].matches('\n');
            out.extend(breaks);
            done = span.range.end;
        }
        out.push_str(&text[done..]);
        let text = Cow::Owned(out);
        RedactedText { text, findings }
    }
}

impl RedactedText<'_> {
    /// Adds the number of findings per rule to `counts`.
    pub fn count_into(&self, counts: &mut BTreeMap<Arc<str>, usize>) {
        for finding in &self.findings {
            *counts.entry(Arc::clone(&finding.rule)).or_default() += 1;
        }
    }
}

/// Markers that the text already contains, in order.
#[derive(Default)]
struct MarkerSpans(Vec<Range<usize>>);

impl MarkerSpans {
    fn record(&mut self, text: &str, start: usize) {
        let name = &text[start + MARKER.len()..];
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let length = name.bytes().take_while(|byte| is_name(*byte)).count();
        if text[start..].starts_with(MARKER) && name[length..].starts_with(']') {
            self.0.push(start..start + MARKER.len() + length + 1);
        }
    }

    fn contains(&self, position: usize) -> bool {
        self.overlaps(&(position..position + 1))
    }

    fn overlaps(&self, range: &Range<usize>) -> bool {
        let after = self.0.partition_point(|marker| marker.end <= range.start);
        self.0
            .get(after)
            .is_some_and(|marker| marker.start < range.end)
    }
}

/// Joins overlapping spans; the rule with the best rank wins.
fn merge(mut spans: Vec<SecretSpan>) -> Vec<SecretSpan> {
    spans.sort_unstable_by_key(|span| (span.range.start, span.rule));
    let mut merged: Vec<SecretSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.range.start < last.range.end => {
                last.range.end = last.range.end.max(span.range.end);
                last.rule = last.rule.min(span.rule);
            }
            _ => merged.push(span),
        }
    }
    merged
}

fn line_around(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..].find('\n');
    start..end.map_or(text.len(), |at| range.end + at)
}

impl Redactor {
    /// Replaces every secret in a named value: `hunter2` is a secret if the name is `password`.
    pub fn redact_value<'t>(&self, name: &str, value: &'t str) -> RedactedText<'t> {
        let before = format!("{name}=\"");
        let whole = format!("{before}{value}\"");
        let of_value = |span: SecretSpan| {
            let start = span.range.start.max(before.len()) - before.len();
            let end = span.range.end.saturating_sub(before.len()).min(value.len());
            let range = start..end;
            (start < end).then_some(SecretSpan { range, ..span })
        };
        let mut found = self.find(value).spans;
        found.extend(self.find(&whole).spans.into_iter().filter_map(of_value));
        let mut redacted = self.replace(value, &merge(found));
        let rest = self.redact(&redacted.text);
        if !rest.findings.is_empty() {
            redacted.findings.extend(rest.findings);
            redacted.text = rest.text.into_owned().into();
        }
        redacted
    }

    /// Replaces every secret in the strings and member names of a JSON value.
    pub fn redact_json(&self, value: &mut Value) -> Vec<SecretFinding> {
        let mut findings = Vec::new();
        self.redact_json_value("", value, &mut findings);
        findings
    }

    fn redact_json_value(&self, name: &str, value: &mut Value, findings: &mut Vec<SecretFinding>) {
        match value {
            Value::String(text) => {
                let redacted = self.redact_value(name, text);
                findings.extend(redacted.findings);
                *text = redacted.text.into_owned();
            }
            Value::Array(values) => {
                let each = values.iter_mut();
                each.for_each(|value| self.redact_json_value(name, value, findings));
            }
            Value::Object(members) => {
                let members_before = std::mem::take(members);
                for (name, mut value) in members_before {
                    self.redact_json_value(&name, &mut value, findings);
                    let name = self.redact(&name);
                    findings.extend(name.findings);
                    members.insert(name.text.into_owned(), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
