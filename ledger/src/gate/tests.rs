use std::borrow::Cow;
use std::collections::HashSet;

use super::*;
use crate::claim::Claims;
use crate::report::TestName;

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

/// Judges a server's duties of which those named are proven.
fn faults(rows: &[Requirement], proven: &[&str], exemptions: &[Exemption]) -> Vec<String> {
    let test = TestName::new("turnbuckle-server", "a_test");
    let mut claims = Claims::default();
    claims.add_spoken(&test, "2026-07-28");
    for id in proven {
        claims.add(id, &test);
    }
    let coverage = Coverage::of(rows, &claims, &HashSet::from([test]));
    let gate = Gate::judge(&coverage, Side::Server, exemptions);
    gate.faults().iter().map(ToString::to_string).collect()
}

#[test]
fn a_duty_that_is_neither_proven_nor_listed_keeps_it_shut() {
    let rows = [
        row("a.one", "MUST", "server"),
        row("a.two", "MUST NOT", "both"),
        row("a.three", "MUST", "both"),
    ];

    let faults = faults(&rows, &["a.three"], &[]);

    assert_eq!(faults.len(), 2);
    assert!(faults[0].starts_with("a.one (tools MUST) has no test"));
    assert!(faults[1].starts_with("a.two (tools MUST NOT) has no test"));
}

#[test]
fn what_is_proven_or_listed_opens_it() {
    let rows = [row("a.one", "MUST", "server"), row("a.two", "MUST", "both")];

    assert!(faults(&rows, &["a.one"], &listed(&[("a.two", "not built")])).is_empty());
}

#[test]
fn advice_and_the_duties_of_others_need_no_proof() {
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

    assert!(faults(&rows, &[], &[]).is_empty());
}

#[test]
fn a_duty_that_is_proven_only_with_foreign_data_may_be_proven_or_not() {
    let rows = [row("a.one", "MUST", "server")];
    let exemptions = listed(&[("a.one", "proven only where the schemas are")]);

    assert!(faults(&rows, &["a.one"], &exemptions).is_empty());
    assert!(faults(&rows, &[], &exemptions).is_empty());
}

#[test]
fn a_listed_duty_that_is_proven_is_stale() {
    let rows = [row("a.one", "MUST", "server")];

    let faults = faults(&rows, &["a.one"], &listed(&[("a.one", "not built")]));

    assert_eq!(
        faults,
        ["a.one is proven in 2026-07-28; take it out of spec/not-proven.csv"]
    );
}

#[test]
fn only_duties_of_a_server_can_be_listed_and_only_once() {
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
        faults(&rows, &[], &exemptions),
        [
            "a.one stands twice in spec/not-proven.csv for 2026-07-28",
            "a.client in spec/not-proven.csv names no duty of a server",
            "a.misspelt in spec/not-proven.csv names no duty of a server",
        ]
    );
}

#[test]
fn it_prints_reasons_once_with_all_that_they_explain() {
    let rows = [row("a.one", "MUST", "server"), row("a.two", "MUST", "both")];
    let coverage = Coverage::of(&rows, &Claims::default(), &HashSet::new());
    let exemptions = listed(&[("a.one", "not built"), ("a.two", "not built")]);

    assert_eq!(
        Gate::judge(&coverage, Side::Server, &exemptions).to_string(),
        "not proven by the server, 2: not built\n  a.one\n  a.two\n\
         duties of a server on the wire: 0 proven in every revision, 2 listed with their reason (2 by revision), 0 at fault\n"
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
fn a_row_without_a_reason_is_refused() {
    parse("id,side,revisions,reason\na.one,server,\n");
}

#[test]
fn what_binds_both_sides_is_a_duty_of_each() {
    let rows = [row("a.one", "MUST", "both"), row("a.two", "MUST", "client")];
    let test = TestName::new("turnbuckle-server::it", "a_test");
    let mut claims = Claims::default();
    claims.add_in("a.one", &test, &["2026-07-28"]);
    let coverage = Coverage::of(&rows, &claims, &HashSet::from([test]));
    let exemptions = parse("id,side,revisions,reason\na.two,client,,not built\n");

    let server = Gate::judge(&coverage, Side::Server, &exemptions);
    let client = Gate::judge(&coverage, Side::Client, &exemptions);

    assert_eq!(server.faults(), []);
    assert_eq!(client.faults(), [Fault::Open(&rows[0], vec!["2026-07-28"])]);
    assert_eq!(
        client.to_string().lines().last(),
        Some(
            "duties of a client on the wire: 0 proven in every revision, 1 listed with their reason (1 by revision), 1 at fault"
        )
    );
}

/// Judges a server's only duty, which names three revisions and is proven in 2025-11-25.
fn faults_by_revision(list: &str) -> Vec<String> {
    let rows = [Requirement {
        revisions: vec!["2025-06-18", "2025-11-25", "2026-07-28"],
        ..row("a.one", "MUST", "server")
    }];
    let test = TestName::new("turnbuckle-server", "a_test");
    let mut claims = Claims::default();
    claims.add("a.one", &test);
    claims.add_spoken(&test, "2025-11-25");
    let coverage = Coverage::of(&rows, &claims, &HashSet::from([test]));
    let exemptions = parse(&format!("id,side,revisions,reason\n{list}"));
    let gate = Gate::judge(&coverage, Side::Server, &exemptions);
    gate.faults().iter().map(ToString::to_string).collect()
}

#[test]
fn a_duty_is_proven_or_listed_in_each_of_its_revisions() {
    assert_eq!(
        faults_by_revision(""),
        ["a.one (tools MUST) has no test that passed in 2025-06-18 2026-07-28: Do it."]
    );
    assert_eq!(
        faults_by_revision("a.one,server,2025-06-18,untested\n"),
        ["a.one (tools MUST) has no test that passed in 2026-07-28: Do it."]
    );
    let two_reasons = "a.one,server,2025-06-18,untested\na.one,server,2026-07-28,not built\n";
    assert_eq!(faults_by_revision(two_reasons), [""; 0]);
}

#[test]
fn a_line_that_names_revisions_is_stale_unknown_or_repeated_by_revision() {
    assert_eq!(
        faults_by_revision("a.one,server,,untested\n"),
        ["a.one is proven in 2025-11-25; take it out of spec/not-proven.csv"]
    );
    assert_eq!(
        faults_by_revision("a.one,server,2024-11-05 2025-06-18 2026-07-28,untested\n"),
        ["a.one stands in spec/not-proven.csv for 2024-11-05, which the requirement does not name"]
    );
    assert_eq!(
        faults_by_revision(
            "a.one,server,2025-06-18 2026-07-28,untested\na.one,server,2026-07-28,not built\n"
        ),
        ["a.one stands twice in spec/not-proven.csv for 2026-07-28"]
    );
}

#[test]
fn every_row_of_the_list_names_a_duty_of_its_side() {
    let coverage = Coverage::of(table::all(), &Claims::default(), &HashSet::new());
    for side in Side::ALL {
        let gate = Gate::judge(&coverage, side, exemptions());

        let faults = gate.faults().iter();
        let wrong: Vec<_> = faults
            .filter(|fault| !matches!(fault, Fault::Open(..)))
            .collect();

        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
