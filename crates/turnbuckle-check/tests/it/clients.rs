//! Clients: our own, with which nothing is wrong, and ones with which one small thing is.

mod asked;
mod authorization;
mod base;
mod calls;
pub(crate) mod good;
mod http;
mod lifecycle;
mod mutant;
mod odd;
mod person;

use turnbuckle_check::{catalogue, report::Grade, rule::Level};

use self::mutant::Mutant;

fn all() -> Vec<Mutant> {
    [
        base::mutants(),
        lifecycle::mutants(),
        http::mutants(),
        asked::mutants(),
        calls::mutants(),
        authorization::mutants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_rule_that_can_fail_has_a_mutant() {
    let mutants = all();
    let without: Vec<_> = catalogue::for_clients()
        .filter(|rule| rule.level() == Level::Fail)
        .filter(|rule| !mutants.iter().any(|mutant| mutant.trips == rule.id))
        .map(|rule| rule.id)
        .collect();
    assert!(without.is_empty(), "{without:#?}");
}

/// Checks all mutants of an area; each has to trip its rule, and nothing else may fail.
async fn assert_each_trips_its_rule(mutants: Vec<Mutant>) {
    let mut wrong = Vec::new();
    for mutant in mutants {
        let report = mutant.check().await;
        let broken: Vec<_> = report
            .rulings()
            .filter(|(_, ruling)| match ruling.grade() {
                Grade::Fail => true,
                Grade::Warn | Grade::Advice => ruling.rule.id == mutant.trips,
                _ => false,
            })
            .map(|(_, ruling)| ruling)
            .collect();
        let ids: Vec<_> = broken.iter().map(|ruling| ruling.rule.id).collect();
        if ids != [mutant.trips] {
            let unspoken = report.runs.iter().filter_map(|run| run.not_spoken.as_ref());
            let unspoken: Vec<_> = unspoken.collect();
            let verdicts: Vec<_> = broken
                .iter()
                .map(|ruling| good::brief(&ruling.verdict))
                .collect();
            wrong.push(format!(
                "{}: “{}” trips {ids:?} {unspoken:?} {}",
                mutant.trips,
                mutant.name,
                verdicts.join("\n  ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
