//! Secrets in what has a name beside it: members of an object, metadata, variables.

use serde_json::Value;

use super::{RedactedText, Redactor, SecretFinding, SecretSpan, merge};

impl Redactor {
    /// Takes every secret out of a value that has a name: `hunter2` is one if it is called a password.
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

    /// Takes every secret out of the strings of a JSON value and out of the names of its members.
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
