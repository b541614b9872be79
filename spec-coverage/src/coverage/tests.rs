use super::*;
use crate::table;

const PROVEN: &str = "base.jsonrpc.conform";
const LOCAL: &str = "base.components.modern";

/// Claims of these tests, each of which spoke every revision.
fn in_every_revision(tests: &[&TestName]) -> Claims {
    let mut claims = Claims::default();
    for test in tests {
        claims.add(PROVEN, test);
        for date in table::DATES {
            claims.add_revision(test, date);
        }
    }
    claims
}

#[test]
fn a_claim_counts_when_its_test_passed() {
    let test = TestName::new("turnbuckle-protocol", "a_test");
    let claims = in_every_revision(&[&test]);

    let coverage = Coverage::new(table::all(), &claims, &HashSet::from([test]));

    assert_eq!(coverage.total().covered, 1);
    assert!(coverage.missing().all(|(row, _)| row.id != PROVEN));
    assert!(coverage.failing().is_empty());
}

#[test]
fn a_claim_of_a_test_that_did_not_pass_does_not_count() {
    let test = TestName::new("turnbuckle-protocol", "a_test");
    let claims = in_every_revision(&[&test]);

    let coverage = Coverage::new(table::all(), &claims, &HashSet::new());

    assert_eq!(coverage.total().covered, 0);
    assert!(coverage.missing().any(|(row, _)| row.id == PROVEN));
    assert_eq!(coverage.failing(), [(PROVEN.to_owned(), test)]);
}

#[test]
fn one_passing_test_is_enough() {
    let (good, bad) = (
        TestName::new("turnbuckle-protocol", "good"),
        TestName::new("turnbuckle-protocol", "bad"),
    );
    let claims = in_every_revision(&[&bad, &good]);

    let coverage = Coverage::new(table::all(), &claims, &HashSet::from([good]));

    assert_eq!(coverage.total().covered, 1);
}

#[test]
fn requirements_that_a_peer_cannot_observe_are_left_out() {
    let coverage = Coverage::new(table::all(), &Claims::default(), &HashSet::new());

    assert!(coverage.missing().all(|(row, _)| row.id != LOCAL));
    assert_eq!(
        coverage.total().total,
        table::all()
            .iter()
            .filter(|row| row.is_on_the_wire())
            .count()
    );
}

#[test]
fn figures_are_printed_and_written_as_json() {
    let test = TestName::new("turnbuckle-protocol", "a_test");
    let claims = in_every_revision(&[&test]);
    let rows: Vec<_> = table::all()
        .iter()
        .filter(|row| [PROVEN, LOCAL].contains(&row.id))
        .cloned()
        .collect();

    let coverage = Coverage::new(&rows, &claims, &HashSet::from([test]));

    assert!(
        coverage
            .to_string()
            .contains("requirements proven on the wire: 1 of 1    100 %\n")
    );
    assert_eq!(
        coverage.to_json(),
        r#"{"total":{"covered":1,"total":1},"proofs":{"covered":10,"total":10},"area":{"base":{"covered":1,"total":1}},"#.to_owned()
            + r#""level":{"MUST":{"covered":1,"total":1}},"role":{"both":{"covered":1,"total":1}}}"#
    );
}

#[test]
fn a_requirement_of_both_sides_needs_tests_of_both() {
    let server = TestName::new("turnbuckle-server::it", "a_test");
    let client = TestName::new("turnbuckle-client::it", "a_test");
    let claims = in_every_revision(&[&server, &client]);
    let rows = [table::find(PROVEN).unwrap().clone()];

    let half = Coverage::new(&rows, &claims, &HashSet::from([server.clone()]));
    let whole = Coverage::new(&rows, &claims, &HashSet::from([server, client]));

    assert_eq!(half.total().covered, 0);
    assert_eq!(
        half.missing().next().unwrap().1,
        [(Side::Client, table::DATES.to_vec())]
    );
    assert!(
        half.mandatory(Side::Server)
            .all(|(_, open)| open.is_empty())
    );
    assert!(
        half.mandatory(Side::Client)
            .all(|(_, open)| !open.is_empty())
    );
    assert_eq!(whole.total().covered, 1);
}

#[test]
fn a_claim_counts_in_the_revisions_that_its_test_used() {
    let test = TestName::new("turnbuckle-protocol", "a_test");
    let mut claims = Claims::default();
    claims.add(PROVEN, &test);
    claims.add_revision(&test, "2025-06-18");
    let rows = [table::find(PROVEN).unwrap().clone()];

    let coverage = Coverage::new(&rows, &claims, &HashSet::from([test]));

    let open = ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"];
    assert_eq!(coverage.total().covered, 0);
    assert_eq!(coverage.proofs(), (2, 10));
    assert_eq!(
        coverage.missing().next().unwrap().1,
        Side::ALL.map(|side| (side, open.to_vec()))
    );
}

#[test]
fn a_claim_of_a_revision_independent_package_counts_in_all() {
    let test = TestName::new("turnbuckle-schema", "a_test");
    let mut claims = Claims::default();
    claims.add(PROVEN, &test);
    let rows = [table::find(PROVEN).unwrap().clone()];

    let coverage = Coverage::new(&rows, &claims, &HashSet::from([test]));

    assert_eq!(coverage.total().covered, 1);
}

#[test]
fn a_claim_of_an_unknown_package_proves_nothing_and_is_named() {
    let test = TestName::new("a-new-package::it", "a_test");
    let claims = in_every_revision(&[&test]);

    let coverage = Coverage::new(table::all(), &claims, &HashSet::from([test.clone()]));

    assert_eq!(coverage.total().covered, 0);
    assert_eq!(coverage.unknown(), [(PROVEN.to_owned(), test)]);
}
