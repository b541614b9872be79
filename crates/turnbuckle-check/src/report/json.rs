//! A report as JSON, for programs.
//!
//! The document is stable: within a version of its format, members are only added. It has
//!
//! - `format`: `turnbuckle-check/1`; `tool`: who made it, and its version;
//! - `role` and `target`: who was checked; `seconds`: how long it took;
//! - `summary`: how many rulings came down to what, and how many of those that are broken are known;
//! - `findings`: what is broken, the same thing in several revisions once, with the exchange that shows it;
//! - `runs`: for each revision and transport its rulings, or why it is `notSpoken`;
//! - `rules`: the rules that were looked at, by name;
//! - `leftOut`: what was left out, and why; `stale`: what a baseline knows to be broken, and is not.
//!
//! `grade` is `pass`, `fail`, `warn`, `advice`, `not-applicable` or `not-tested`; `level` is `fail`, `warn` or `advice`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use turnbuckle_protocol::revision::Revision;

use super::{Finding, Grade, Report, Ruling, Run, Shown, Verdict, page};
use crate::rule::Rule;

/// The longest message that is quoted whole.
const LONGEST: usize = 16 * 1024;

/// Returns a report as a document.
pub fn document(report: &Report) -> Value {
    let rules: BTreeMap<_, _> = report
        .rulings()
        .map(|(_, ruling)| (ruling.rule.id, rule(ruling.rule)))
        .collect();
    json!({
        "format": "turnbuckle-check/1",
        "tool": { "name": "turnbuckle", "version": env!("CARGO_PKG_VERSION") },
        "role": report.role,
        "target": report.target,
        "seconds": report.took.as_secs_f64(),
        "summary": summary(report),
        "findings": report.findings().iter().map(finding).collect::<Vec<_>>(),
        "runs": report.runs.iter().map(run).collect::<Vec<_>>(),
        "rules": rules,
        "leftOut": report.left_out,
        "stale": report.stale,
    })
}

/// Returns rules as a document: what they say, and how much they matter in which revision.
pub fn catalogue<'a>(rules: impl Iterator<Item = &'a Rule>) -> Value {
    let rules: Vec<_> = rules
        .map(|one| {
            let mut document = json!({ "id": one.id });
            let members = document.as_object_mut().expect("it was made as an object");
            members.extend(rule(one).as_object().cloned().unwrap_or_default());
            document
        })
        .collect();
    json!({ "format": "turnbuckle-check-rules/1", "rules": rules })
}

fn summary(report: &Report) -> Value {
    let known = report.rulings().filter(|(_, ruling)| ruling.known);
    json!({
        "pass": report.count(Grade::Pass),
        "fail": report.count(Grade::Fail),
        "warn": report.count(Grade::Warn),
        "advice": report.count(Grade::Advice),
        "notApplicable": report.count(Grade::NotApplicable),
        "notTested": report.count(Grade::NotTested),
        "known": known.count(),
    })
}

fn finding(finding: &Finding<'_>) -> Value {
    let places: Vec<_> = finding
        .places
        .iter()
        .map(|place| json!({ "revision": place.revision.as_str(), "transport": place.transport }))
        .collect();
    json!({
        "rule": finding.rule.id,
        "level": finding.level,
        "known": finding.known,
        "what": finding.what,
        "cure": finding.rule.cure,
        "places": places,
        "exchange": finding.exchange.iter().map(shown).collect::<Vec<_>>(),
    })
}

fn run(run: &Run) -> Value {
    let mut document = json!({
        "revision": run.revision.as_str(),
        "transport": run.transport,
        "rulings": run.rulings.iter().map(ruling).collect::<Vec<_>>(),
    });
    if let Some(why) = &run.not_spoken {
        document["notSpoken"] = why.as_str().into();
    }
    document
}

fn ruling(ruling: &Ruling) -> Value {
    let mut document = json!({
        "rule": ruling.rule.id,
        "level": ruling.level,
        "grade": ruling.grade(),
    });
    match &ruling.verdict {
        // That there is evidence is enough: what is kept need not be quoted.
        Verdict::Kept(evidence) => document["evidence"] = evidence.len().into(),
        Verdict::Broken { what, .. } => {
            document["what"] = what.as_str().into();
            document["known"] = ruling.known.into();
        }
        Verdict::NotApplicable(why) | Verdict::NotTested(why) => {
            document["why"] = why.as_str().into();
        }
    }
    document
}

fn shown(shown: &Shown) -> Value {
    let mut document = json!({ "from": if shown.theirs { "them" } else { "us" } });
    if let Some(line) = &shown.line {
        document["line"] = line.as_str().into();
        document["headers"] = json!(shown.headers);
    }
    document["text"] = shown.excerpt(LONGEST).into();
    document
}

fn rule(rule: &Rule) -> Value {
    let rows: Vec<_> = rule
        .requirements()
        .map(|row| {
            json!({
                "id": row.id,
                "level": row.level,
                "revisions": row.revisions,
                "summary": row.summary,
                "page": page(row.source),
            })
        })
        .collect();
    let levels: Map<_, _> = Revision::ALL
        .into_iter()
        .filter(|&revision| rule.binds_in(revision))
        .map(|revision| (revision.to_string(), json!(rule.level_in(revision))))
        .collect();
    json!({
        "role": rule.role,
        "area": rule.area.id(),
        "on": rule.on,
        "says": rule.says,
        "cure": rule.cure,
        "levels": levels,
        "requirements": rows,
    })
}

#[cfg(test)]
mod tests {
    use crate::report::sample;

    #[test]
    fn a_report_is_a_document() {
        let document = super::document(&sample::report());
        let text = serde_json::to_string_pretty(&document).expect("it is JSON");

        insta::assert_snapshot!(sample::without_version(&text));
    }
}
