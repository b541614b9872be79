//! Redaction of new items.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::NewItem;
use crate::Redactor;

/// Redacts items and counts the findings.
pub(crate) struct ItemRedactor<'r> {
    redactor: &'r Redactor,
    counts: BTreeMap<String, u32>,
}

impl<'r> ItemRedactor<'r> {
    pub(crate) fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            counts: BTreeMap::new(),
        }
    }

    /// Redacts all texts of a new item.
    pub(crate) fn redact_item(&mut self, new_item: &mut NewItem) {
        for text in [
            &mut new_item.title,
            &mut new_item.body,
            &mut new_item.detail,
        ] {
            self.text(text);
        }
        for tag in &mut new_item.tags {
            self.text(tag);
        }
        self.map(&mut new_item.meta);
    }

    /// Returns the number of redactions so far.
    pub(crate) fn count(&self) -> u32 {
        self.counts.values().sum()
    }

    /// Returns the number of redactions by rule.
    pub(crate) fn into_counts(self) -> BTreeMap<String, u32> {
        self.counts
    }

    fn text(&mut self, text: &mut String) {
        let redacted = self.redactor.redact(text);
        for finding in &redacted.findings {
            *self.counts.entry(finding.rule.to_string()).or_default() += 1;
        }
        if !redacted.findings.is_empty() {
            *text = redacted.text.into_owned();
        }
    }

    fn map(&mut self, map: &mut Map<String, Value>) {
        let entries = std::mem::take(map);
        map.extend(entries.into_iter().map(|(mut key, mut value)| {
            self.entry(&key, &mut value);
            self.text(&mut key);
            self.value(&mut value);
            (key, value)
        }));
    }

    /// Redacts a value by its key: a password looks like any other word without it.
    fn entry(&mut self, key: &str, value: &mut Value) {
        let Value::String(text) = value else { return };
        let line = format!("{key}={text}");
        let redacted = self.redactor.redact(&line);
        let begin = format!("{key}=");
        if let (false, Some(rest)) = (
            redacted.findings.is_empty(),
            redacted.text.strip_prefix(&begin),
        ) {
            for finding in &redacted.findings {
                *self.counts.entry(finding.rule.to_string()).or_default() += 1;
            }
            *text = rest.to_owned();
        }
    }

    fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(map) => self.map(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
