use std::{borrow::Cow, collections::HashSet};

use super::*;
use crate::{claim::Claims, report::TestName};

fn row(id: &'static str, level: &'static str, role: &'static str) -> Requirement {
    Requirement {
        id,
        area: "tools",
        level,
        role,
        revisions: vec!["2026-07-28"],
        summary: Cow::Borrowed("Do it."),
        source: "page#section",
        observable: "wire",
        checklist: Vec::new(),
    }
}

fn listed(rows: &[(&str, &str)]) -> Vec<Exemption> {
    let exemption = |(id, reason): &(&str, &str)| Exemption {
        id: (*id).to_owned(),
        sides: vec![Side::Server],
        revisions: Vec::new(),
        reason: (*reason).to_owned(),
    };
    rows.iter().map(exemption).collect()
}

/// Returns the violations of a server if only the named requirements are proven.
fn violations(rows: &[Requirement], proven: &[&str], exemptions: &[Exemption]) -> Vec<String> {
    let test = TestName::new("turnbuckle-server", "a_test");
    let mut claims = Claims::default();
    claims.add_revision(&test, "2026-07-28");
    for id in proven {
        claims.add(id, &test);
    }
    let coverage = Coverage::new(rows, &claims, &HashSet::from([test]));
    let gate = CoverageGate::evaluate(&coverage, Side::Server, exemptions);
    gate.violations().iter().map(ToString::to_string).collect()
}

#[test]
fn a_requirement_neither_proven_nor_listed_fails_the_gate() {
    let rows = [
        row("a.one", "MUST", "server"),
        row("a.two", "MUST NOT", "both"),
        row("a.three", "MUST", "both"),
    ];

    let violations = violations(&rows, &["a.three"], &[]);

    assert_eq!(violations.len(), 2);
    assert!(violations[0].starts_with("a.one (tools MUST) lacks a passing test"));
    assert!(violations[1].starts_with("a.two (tools MUST NOT) lacks a passing test"));
}

#[test]
fn a_requirement_proven_or_listed_passes_the_gate() {
    let rows = [row("a.one", "MUST", "server"), row("a.two", "MUST", "both")];

    assert!(violations(&rows, &["a.one"], &listed(&[("a.two", "not built")])).is_empty());
}

#[test]
fn recommendations_and_requirements_of_others_need_no_proof() {
    let local = Requirement {
        observable: "local",
        ..row("a.local", "MUST", "server")
    };
    let rows = [
        row("a.should", "SHOULD", "server"),
        row("a.client", "MUST", "client"),
        row("a.as", "MUST", "as"),
        local,
    ];

    assert!(violations(&rows, &[], &[]).is_empty());
}

#[test]
fn a_requirement_that_depends_on_foreign_data_may_be_proven_or_not() {
    let rows = [row("a.one", "MUST", "server")];
    let exemptions = listed(&[("a.one", "proven only where the schemas are")]);

    assert!(violations(&rows, &["a.one"], &exemptions).is_empty());
    assert!(violations(&rows, &[], &exemptions).is_empty());
}

#[test]
fn a_listed_requirement_that_is_proven_is_stale() {
    let rows = [row("a.one", "MUST", "server")];

    let violations = violations(&rows, &["a.one"], &listed(&[("a.one", "not built")]));

    assert_eq!(
        violations,
        ["a.one is proven in 2026-07-28; take it out of spec/not-proven.csv"]
    );
}

#[test]
fn only_mandatory_requirements_can_be_listed_and_only_once() {
    let rows = [
        row("a.one", "MUST", "server"),
        row("a.client", "MUST", "client"),
    ];
    let exemptions = listed(&[
        ("a.one", "not built"),
        ("a.one", "not built"),
        ("a.client", "not ours"),
        ("a.misspelt", "not built"),
    ]);

    assert_eq!(
        violations(&rows, &[], &exemptions),
        [
            "a.one is listed twice in spec/not-proven.csv for 2026-07-28",
            "a.client in spec/not-proven.csv is not a mandatory requirement of a server",
            "a.misspelt in spec/not-proven.csv is not a mandatory requirement of a server",
        ]
    );
}

#[test]
fn each_reason_is_printed_once_with_its_requirements() {
    let rows = [row("a.one", "MUST", "server"), row("a.two", "MUST", "both")];
    let coverage = Coverage::new(&rows, &Claims::default(), &HashSet::new());
    let exemptions = listed(&[("a.one", "not built"), ("a.two", "not built")]);

    assert_eq!(
        CoverageGate::evaluate(&coverage, Side::Server, &exemptions).to_string(),
        "not proven by the server, 2: not built\n  a.one\n  a.two\n\
         mandatory requirements of a server on the wire: 0 proven in every revision, 2 listed with their reason (2 by revision), 0 violations\n"
    );
}

#[test]
fn remarks_are_skipped_and_a_reason_may_hold_commas() {
    assert_eq!(
        parse("# a remark\nid,side,revisions,reason\na.one,server,,\"not built, yet\"\n"),
        listed(&[("a.one", "not built, yet")])
    );
}

#[test]
#[should_panic(expected = "a row is an id, a side, revisions and a reason: a.one")]
fn a_row_without_a_reason_is_rejected() {
    parse("id,side,revisions,reason\na.one,server,\n");
}

#[test]
fn a_requirement_of_both_sides_counts_for_each() {
    let rows = [row("a.one", "MUST", "both"), row("a.two", "MUST", "client")];
    let test = TestName::new("turnbuckle-server::it", "a_test");
    let mut claims = Claims::default();
    claims.add_in("a.one", &test, &["2026-07-28"]);
    let coverage = Coverage::new(&rows, &claims, &HashSet::from([test]));
    let exemptions = parse("id,side,revisions,reason\na.two,client,,not built\n");

    let server = CoverageGate::evaluate(&coverage, Side::Server, &exemptions);
    let client = CoverageGate::evaluate(&coverage, Side::Client, &exemptions);

    assert_eq!(server.violations(), []);
    assert_eq!(
        client.violations(),
        [GateViolation::Open(&rows[0], vec!["2026-07-28"])]
    );
    assert_eq!(
        client.to_string().lines().last(),
        Some(
            "mandatory requirements of a client on the wire: 0 proven in every revision, 1 listed with their reason (1 by revision), 1 violations"
        )
    );
}

/// Judges a server's only requirement, which names three revisions and is proven in 2025-11-25.
fn violations_by_revision(list: &str) -> Vec<String> {
    let rows = [Requirement {
        revisions: vec!["2025-06-18", "2025-11-25", "2026-07-28"],
        ..row("a.one", "MUST", "server")
    }];
    let test = TestName::new("turnbuckle-server", "a_test");
    let mut claims = Claims::default();
    claims.add("a.one", &test);
    claims.add_revision(&test, "2025-11-25");
    let coverage = Coverage::new(&rows, &claims, &HashSet::from([test]));
    let exemptions = parse(&format!("id,side,revisions,reason\n{list}"));
    let gate = CoverageGate::evaluate(&coverage, Side::Server, &exemptions);
    gate.violations().iter().map(ToString::to_string).collect()
}

#[test]
fn a_requirement_is_proven_or_listed_in_each_revision() {
    assert_eq!(
        violations_by_revision(""),
        ["a.one (tools MUST) lacks a passing test in 2025-06-18 2026-07-28: Do it."]
    );
    assert_eq!(
        violations_by_revision("a.one,server,2025-06-18,untested\n"),
        ["a.one (tools MUST) lacks a passing test in 2026-07-28: Do it."]
    );
    let two_reasons = "a.one,server,2025-06-18,untested\na.one,server,2026-07-28,not built\n";
    assert_eq!(violations_by_revision(two_reasons), [""; 0]);
}

#[test]
fn a_line_that_names_revisions_is_stale_unknown_or_repeated_by_revision() {
    assert_eq!(
        violations_by_revision("a.one,server,,untested\n"),
        ["a.one is proven in 2025-11-25; take it out of spec/not-proven.csv"]
    );
    assert_eq!(
        violations_by_revision("a.one,server,2024-11-05 2025-06-18 2026-07-28,untested\n"),
        [
            "a.one is listed in spec/not-proven.csv for 2024-11-05, which the requirement does not name"
        ]
    );
    assert_eq!(
        violations_by_revision(
            "a.one,server,2025-06-18 2026-07-28,untested\na.one,server,2026-07-28,not built\n"
        ),
        ["a.one is listed twice in spec/not-proven.csv for 2026-07-28"]
    );
}

#[test]
fn every_row_of_the_list_names_a_mandatory_requirement() {
    let coverage = Coverage::new(table::all(), &Claims::default(), &HashSet::new());
    for side in Side::ALL {
        let gate = CoverageGate::evaluate(&coverage, side, exemptions());

        let violations = gate.violations().iter();
        let wrong: Vec<_> = violations
            .filter(|violation| !matches!(violation, GateViolation::Open(..)))
            .collect();

        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
