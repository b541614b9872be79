//! A report as SARIF 2.1.0, for tools that collect findings.
//!
//! A finding is one result, wherever it was seen; its properties say in which revisions. What is known is suppressed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::text::line;
use super::{Finding, Report, View, page};
use crate::rule::{Level, Rule};

/// Returns a report as a document.
pub fn document(report: &Report, view: &View) -> Value {
    let findings = view.findings(report);
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

/// Returns the rules that were looked at, in the order of the report.
fn rules(report: &Report) -> Vec<&'static Rule> {
    let mut seen = BTreeSet::new();
    let rules = report.rulings().map(|(_, ruling)| ruling.rule);
    rules.filter(|rule| seen.insert(rule.id)).collect()
}

fn descriptor(rule: &Rule) -> Value {
    let rows: Vec<_> = rule.requirements().collect();
    let pages = rows.iter().filter_map(|row| page(row.source));
    let mut document = json!({
        "id": rule.id,
        "shortDescription": { "text": rule.says },
        "help": { "text": rule.cure },
        "defaultConfiguration": { "level": level(rule.level()) },
        "properties": {
            "area": rule.area.id(),
            "requirements": rows.iter().map(|row| row.id).collect::<Vec<_>>(),
        },
    });
    if let Some(page) = pages.into_iter().next() {
        document["helpUri"] = page.into();
    }
    document
}

fn result(finding: &Finding<'_>, rules: &[&Rule], report: &Report) -> Value {
    let at = rules.iter().position(|rule| rule.id == finding.rule.id);
    let revisions: Vec<_> = finding
        .places
        .iter()
        .map(|place| place.revision.as_str())
        .collect();
    let transports: BTreeSet<_> = finding.places.iter().map(|place| place.transport).collect();
    let text = format!(
        "{} (in {}). {}",
        line(finding.what),
        revisions.join(", "),
        finding.rule.cure
    );
    // What looks like a link would be one.
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
            "logicalLocations": [{ "name": line(&report.target), "kind": "module" }],
        }],
        "partialFingerprints": { "ruleAndRevisions/v1": format!("{} {}", finding.rule.id, revisions.join(" ")) },
        "properties": { "revisions": revisions, "transports": transports },
    });
    if finding.known {
        document["suppressions"] = json!([{ "kind": "external", "justification": "known" }]);
    }
    document
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Fail => "error",
        Level::Warn => "warning",
        Level::Advice => "note",
    }
}

/// What was checked may be a command: then whatever has no place in a URI is written as `%20`.
fn uri(target: &str) -> String {
    let allowed: &[u8] = match target.contains("://") {
        true => b"-._~:/?[]@!$&'()*+,;=%",
        false => b"-._~/",
    };
    let mut text = String::new();
    for byte in target.bytes() {
        match byte.is_ascii_alphanumeric() || allowed.contains(&byte) {
            true => text.push(byte.into()),
            false => text += &format!("%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Verdict, sample};

    #[test]
    fn a_report_is_a_run_with_results() {
        let document = document(&sample::report(), &View::default());
        let text = serde_json::to_string_pretty(&document).expect("it is JSON");

        insta::assert_snapshot!(sample::without_version(&text));
    }

    #[test]
    fn what_a_server_says_is_no_link() {
        let mut report = sample::report();
        for ruling in report.runs.iter_mut().flat_map(|run| &mut run.rulings) {
            if let Verdict::Broken { what, .. } = &mut ruling.verdict {
                *what = "[here](https://evil.example) \u{202e}".to_owned();
            }
        }

        let document = document(&report, &View::default());

        let text = document["runs"][0]["results"][0]["message"]["text"].as_str();
        let begins = r"\[here\](https://evil.example) \\u{202e}";
        assert!(
            text.is_some_and(|text| text.starts_with(begins)),
            "{text:?}"
        );
    }

    #[test]
    fn a_command_is_a_uri_too() {
        assert_eq!(uri("my server"), "my%20server");
        assert_eq!(uri("npx a:b 100%"), "npx%20a%3Ab%20100%25");
        assert_eq!(uri("https://a.example/mcp"), "https://a.example/mcp");
    }
}
