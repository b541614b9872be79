use super::*;
use crate::table;

const PROVEN: &str = "base.jsonrpc.conform";
const LOCAL: &str = "base.components.modern";

#[test]
fn a_claim_counts_when_its_test_passed() {
    let test = TestName::new("turnbuckle-protocol", "a_test");
    let claims = Claims::from([(PROVEN.to_owned(), vec![test.clone()])]);

    let coverage = Coverage::of(table::all(), &claims, &HashSet::from([test]));

    assert_eq!(coverage.total().covered, 1);
    assert!(coverage.missing().all(|(row, _)| row.id != PROVEN));
    assert!(coverage.failing().is_empty());
}

#[test]
fn a_claim_of_a_test_that_did_not_pass_does_not_count() {
    let test = TestName::new("turnbuckle-protocol", "a_test");
    let claims = Claims::from([(PROVEN.to_owned(), vec![test.clone()])]);

    let coverage = Coverage::of(table::all(), &claims, &HashSet::new());

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
    let claims = Claims::from([(PROVEN.to_owned(), vec![bad, good.clone()])]);

    let coverage = Coverage::of(table::all(), &claims, &HashSet::from([good]));

    assert_eq!(coverage.total().covered, 1);
}

#[test]
fn what_a_peer_cannot_see_is_left_out() {
    let coverage = Coverage::of(table::all(), &Claims::new(), &HashSet::new());

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
    let claims = Claims::from([(PROVEN.to_owned(), vec![test.clone()])]);
    let rows: Vec<_> = table::all()
        .iter()
        .filter(|row| [PROVEN, LOCAL].contains(&row.id))
        .cloned()
        .collect();

    let coverage = Coverage::of(&rows, &claims, &HashSet::from([test]));

    assert!(
        coverage
            .to_string()
            .ends_with("requirements proven on the wire: 1 of 1    100 %\n")
    );
    assert_eq!(
        coverage.to_json(),
        r#"{"total":{"covered":1,"total":1},"area":{"base":{"covered":1,"total":1}},"#.to_owned()
            + r#""level":{"MUST":{"covered":1,"total":1}},"role":{"both":{"covered":1,"total":1}}}"#
    );
}

#[test]
fn what_binds_both_sides_is_proven_by_tests_of_both() {
    let server = TestName::new("turnbuckle-server::it", "a_test");
    let client = TestName::new("turnbuckle-client::it", "a_test");
    let claims = Claims::from([(PROVEN.to_owned(), vec![server.clone(), client.clone()])]);
    let rows = [table::find(PROVEN).unwrap().clone()];

    let half = Coverage::of(&rows, &claims, &HashSet::from([server.clone()]));
    let whole = Coverage::of(&rows, &claims, &HashSet::from([server, client]));

    assert_eq!(half.total().covered, 0);
    assert_eq!(half.missing().next().unwrap().1, [Side::Client]);
    assert!(half.duties(Side::Server).all(|(_, proven)| proven));
    assert!(half.duties(Side::Client).all(|(_, proven)| !proven));
    assert_eq!(whole.total().covered, 1);
}
