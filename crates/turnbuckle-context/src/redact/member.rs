//! Secrets in what has a name beside it: members of an object, metadata, variables.

use serde_json::Value;

use super::{Finding, Redacted, Redactor, Span, merge};

impl Redactor {
    /// Takes every secret out of a value that has a name: `hunter2` is one if it is called a password.
    pub fn redact_member<'t>(&self, name: &str, value: &'t str) -> Redacted<'t> {
        let before = format!("{name}=\"");
        let whole = format!("{before}{value}\"");
        let of_value = |span: Span| {
            let start = span.range.start.max(before.len()) - before.len();
            let end = span.range.end.saturating_sub(before.len()).min(value.len());
            let range = start..end;
            (start < end).then_some(Span { range, ..span })
        };
        let mut found = self.find(value).spans;
        found.extend(self.find(&whole).spans.into_iter().filter_map(of_value));
        let mut redacted = self.take_out(value, &merge(found));
        let rest = self.redact(&redacted.text);
        if !rest.findings.is_empty() {
            redacted.findings.extend(rest.findings);
            redacted.text = rest.text.into_owned().into();
        }
        redacted
    }

    /// Takes every secret out of the strings of a JSON value and out of the names of its members.
    pub fn redact_json(&self, value: &mut Value) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.visit("", value, &mut findings);
        findings
    }

    fn visit(&self, name: &str, value: &mut Value, findings: &mut Vec<Finding>) {
        match value {
            Value::String(text) => {
                let redacted = self.redact_member(name, text);
                findings.extend(redacted.findings);
                *text = redacted.text.into_owned();
            }
            Value::Array(values) => {
                let each = values.iter_mut();
                each.for_each(|value| self.visit(name, value, findings));
            }
            Value::Object(members) => {
                let members_before = std::mem::take(members);
                for (name, mut value) in members_before {
                    self.visit(&name, &mut value, findings);
                    let name = self.redact(&name);
                    findings.extend(name.findings);
                    members.insert(name.text.into_owned(), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
