//! JSON report, for programs.
//!
//! The format is stable: within a version, members are only added. It has
//!
//! - `format`: `turnbuckle-check/1`; `tool`: name and version of the checker;
//! - `role` and `target`: what was checked; `seconds`: the duration;
//! - `summary`: the number of results per status, and of violations in the baseline;
//! - `findings`: violations, merged over revisions, with the messages that show them;
//! - `runs`: the results per revision and transport, or `notSpoken` with a reason;
//! - `rules`: the rules that ran, by id;
//! - `leftOut`: skipped steps, with reasons; `stale`: baseline entries that no longer apply.
//!
//! `grade` is `pass`, `fail`, `warn`, `advice`, `not-applicable` or `not-tested`; `level` is `fail`, `warn` or
//! `advice`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use turnbuckle_protocol::revision::Revision;

use super::{
    EvidenceExcerpt, Report, RuleFinding, RuleOutcome, RuleResult, RuleStatus, RunReport, spec_link,
};
use crate::rule::Rule;

/// The maximum length of a quoted message.
const MAX_TEXT_CHARS: usize = 16 * 1024;

/// Returns the report as JSON.
pub fn document(report: &Report) -> Value {
    let rules: BTreeMap<_, _> = report
        .results()
        .map(|(_, result)| (result.rule.id, rule(result.rule)))
        .collect();
    json!({
        "format": "turnbuckle-check/1",
        "tool": { "name": "turnbuckle", "version": env!("CARGO_PKG_VERSION") },
        "role": report.role,
        "target": report.target,
        "seconds": report.duration.as_secs_f64(),
        "summary": summary(report),
        "findings": report.findings().iter().map(finding).collect::<Vec<_>>(),
        "runs": report.runs.iter().map(run).collect::<Vec<_>>(),
        "rules": rules,
        "leftOut": report.skipped,
        "stale": report.stale_baseline,
    })
}

/// Returns the rules as JSON, with their levels per revision.
pub fn catalog<'a>(rules: impl Iterator<Item = &'a Rule>) -> Value {
    let rules: Vec<_> = rules
        .map(|one| {
            let mut document = json!({ "id": one.id });
            let members = document.as_object_mut().expect("the value is an object");
            members.extend(rule(one).as_object().cloned().unwrap_or_default());
            document
        })
        .collect();
    json!({ "format": "turnbuckle-check-rules/1", "rules": rules })
}

fn summary(report: &Report) -> Value {
    let known = report.results().filter(|(_, result)| result.in_baseline);
    json!({
        "pass": report.count(RuleStatus::Pass),
        "fail": report.count(RuleStatus::Fail),
        "warn": report.count(RuleStatus::Warn),
        "advice": report.count(RuleStatus::Advice),
        "notApplicable": report.count(RuleStatus::NotApplicable),
        "notTested": report.count(RuleStatus::NotTested),
        "known": known.count(),
    })
}

fn finding(finding: &RuleFinding<'_>) -> Value {
    let locations: Vec<_> = finding
        .locations
        .iter()
        .map(|place| json!({ "revision": place.revision.as_str(), "transport": place.transport }))
        .collect();
    let mut document = json!({
        "rule": finding.rule.id,
        "level": finding.level,
        "known": finding.in_baseline,
        "what": finding.observed,
        "hint": finding.rule.hint,
        "places": locations,
        "exchange": finding.evidence.iter().map(evidence).collect::<Vec<_>>(),
    });
    if let Some(row) = finding.requirement() {
        document["requirement"] = json!({
            "id": row.id,
            "level": row.level,
            "summary": row.summary,
            "page": finding.link(),
        });
    }
    document
}

fn run(run: &RunReport) -> Value {
    let mut document = json!({
        "revision": run.revision.as_str(),
        "transport": run.transport,
        "rulings": run.results.iter().map(result).collect::<Vec<_>>(),
    });
    if let Some(why) = &run.unsupported {
        document["notSpoken"] = why.as_str().into();
    }
    document
}

fn result(result: &RuleResult) -> Value {
    let mut document = json!({
        "rule": result.rule.id,
        "level": result.level,
        "grade": result.status(),
    });
    match &result.outcome {
        // Evidence of passed rules is only counted.
        RuleOutcome::Passed(evidence) => document["evidence"] = evidence.len().into(),
        RuleOutcome::Violated { observed, .. } => {
            document["what"] = observed.as_str().into();
            document["known"] = result.in_baseline.into();
        }
        RuleOutcome::NotApplicable(why) | RuleOutcome::NotTested(why) => {
            document["why"] = why.as_str().into();
        }
    }
    document
}

fn evidence(evidence: &EvidenceExcerpt) -> Value {
    let mut document = json!({ "from": if evidence.from_peer { "them" } else { "us" } });
    if let Some(line) = &evidence.start_line {
        document["line"] = line.as_str().into();
        document["headers"] = json!(evidence.headers);
    }
    document["text"] = evidence.excerpt(MAX_TEXT_CHARS).into();
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
                "page": spec_link(row.source),
            })
        })
        .collect();
    let levels: Map<_, _> = Revision::ALL
        .into_iter()
        .filter(|&revision| rule.applies_in(revision))
        .map(|revision| (revision.to_string(), json!(rule.level_in(revision))))
        .collect();
    json!({
        "role": rule.role,
        "area": rule.area.id(),
        "on": rule.transports,
        "description": rule.requirement,
        "hint": rule.hint,
        "levels": levels,
        "requirements": rows,
    })
}

#[cfg(test)]
mod tests {
    use crate::report::sample;

    #[test]
    fn json_report_matches_the_snapshot() {
        let document = super::document(&sample::report());
        let text = serde_json::to_string_pretty(&document).expect("the report serializes");

        insta::assert_snapshot!(sample::without_version(&text));
    }
}
