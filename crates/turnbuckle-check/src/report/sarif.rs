//! SARIF 2.1.0 report, for tools that collect findings.
//!
//! A finding is one result; its properties list the revisions. Violations in the baseline are suppressed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnbuckle_text::sanitize::escape_line;

use super::{Report, ReportOptions, RuleFinding, spec_link};
use crate::rule::{RequirementLevel, Rule};

/// Returns the report as SARIF.
pub fn document(report: &Report, options: &ReportOptions) -> Value {
    let findings = options.findings(report);
    let rules = rules(report);
    let results: Vec<_> = findings
        .iter()
        .map(|finding| result(finding, &rules, report))
        .collect();
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "turnbuckle check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
            } },
            "invocations": [{ "executionSuccessful": true }],
            "results": results,
            "columnKind": "unicodeCodePoints",
        }],
    })
}

/// Returns the rules that ran, in report order.
fn rules(report: &Report) -> Vec<&'static Rule> {
    let mut evidence = BTreeSet::new();
    let rules = report.results().map(|(_, result)| result.rule);
    rules.filter(|rule| evidence.insert(rule.id)).collect()
}

fn descriptor(rule: &Rule) -> Value {
    let rows: Vec<_> = rule.requirements().collect();
    let pages = rows.iter().filter_map(|row| spec_link(row.source));
    let mut document = json!({
        "id": rule.id,
        "shortDescription": { "text": rule.requirement },
        "help": { "text": rule.hint },
        "defaultConfiguration": { "level": level(rule.level()) },
        "properties": {
            "area": rule.area.id(),
            "requirements": rows.iter().map(|row| row.id).collect::<Vec<_>>(),
        },
    });
    if let Some(spec_link) = pages.into_iter().next() {
        document["helpUri"] = spec_link.into();
    }
    document
}

fn result(finding: &RuleFinding<'_>, rules: &[&Rule], report: &Report) -> Value {
    let at = rules.iter().position(|rule| rule.id == finding.rule.id);
    let revisions: Vec<_> = finding
        .locations
        .iter()
        .map(|location| location.revision.as_str())
        .collect();
    let transports: BTreeSet<_> = finding
        .locations
        .iter()
        .map(|location| location.transport)
        .collect();
    let text = format!(
        "{} (in {}). {}",
        escape_line(finding.observed),
        revisions.join(", "),
        finding.rule.hint
    );
    // Text that looks like a link would become one.
    let text = text
        .replace('\\', "\\\\")
        .replace('[', "\\[")
        .replace(']', "\\]");
    let mut document = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": at,
        "level": level(finding.level),
        "message": { "text": text },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": uri(&report.target) } },
            "logicalLocations": [{ "name": escape_line(&report.target), "kind": "module" }],
        }],
        "partialFingerprints": { "ruleAndRevisions/v1": format!("{} {}", finding.rule.id, revisions.join(" ")) },
        "properties": { "revisions": revisions, "transports": transports },
    });
    if finding.in_baseline {
        document["suppressions"] =
            json!([{ "kind": "external", "justification": "in the baseline" }]);
    }
    document
}

fn level(level: RequirementLevel) -> &'static str {
    match level {
        RequirementLevel::Fail => "error",
        RequirementLevel::Warn => "warning",
        RequirementLevel::Advice => "note",
    }
}

/// Returns the target as a URI; a command is percent-encoded.
fn uri(target: &str) -> String {
    let allowed: &[u8] = if target.contains("://") {
        b"-._~:/?[]@!$&'()*+,;=%"
    } else {
        b"-._~/"
    };
    let mut text = String::new();
    for byte in target.bytes() {
        if byte.is_ascii_alphanumeric() || allowed.contains(&byte) {
            text.push(byte.into());
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{RuleOutcome, sample};

    #[test]
    fn sarif_report_is_a_run_with_results() {
        let document = document(&sample::report(), &ReportOptions::default());
        let text = serde_json::to_string_pretty(&document).expect("the report serializes");

        insta::assert_snapshot!(sample::without_version(&text));
    }

    #[test]
    fn server_text_does_not_become_a_link() {
        let mut report = sample::report();
        for result in report.runs.iter_mut().flat_map(|run| &mut run.results) {
            if let RuleOutcome::Violated { observed, .. } = &mut result.outcome {
                *observed = "[here](https://evil.example) \u{202e}".to_owned();
            }
        }

        let document = document(&report, &ReportOptions::default());

        let text = document["runs"][0]["results"][0]["message"]["text"].as_str();
        let begins = r"\[here\](https://evil.example) \\u{202e}";
        assert!(
            text.is_some_and(|text| text.starts_with(begins)),
            "{text:?}"
        );
    }

    #[test]
    fn command_is_encoded_as_a_uri() {
        assert_eq!(uri("my server"), "my%20server");
        assert_eq!(uri("npx a:b 100%"), "npx%20a%3Ab%20100%25");
        assert_eq!(uri("https://a.example/mcp"), "https://a.example/mcp");
    }
}
