//! Clients: our own, with which nothing is wrong, and ones with which one small thing is.

mod authorization;
mod base;
mod calls;
pub(crate) mod good;
mod http;
mod lifecycle;
mod mutant;
mod server_requests;
mod unusual;
mod user;

use turnbuckle_check::{catalog, report::RuleStatus, rule::RequirementLevel};

use self::mutant::Mutant;

fn all() -> Vec<Mutant> {
    [
        base::mutants(),
        lifecycle::mutants(),
        http::mutants(),
        server_requests::mutants(),
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
    let without: Vec<_> = catalog::for_clients()
        .filter(|rule| rule.level() == RequirementLevel::Fail)
        .filter(|rule| !mutants.iter().any(|mutant| mutant.violates == rule.id))
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
            .results()
            .filter(|(_, result)| match result.status() {
                RuleStatus::Fail => true,
                RuleStatus::Warn | RuleStatus::Advice => result.rule.id == mutant.violates,
                _ => false,
            })
            .map(|(_, result)| result)
            .collect();
        let ids: Vec<_> = broken.iter().map(|result| result.rule.id).collect();
        if ids != [mutant.violates] {
            let unspoken = report
                .runs
                .iter()
                .filter_map(|run| run.unsupported.as_ref());
            let unspoken: Vec<_> = unspoken.collect();
            let verdicts: Vec<_> = broken
                .iter()
                .map(|result| good::brief(&result.outcome))
                .collect();
            wrong.push(format!(
                "{}: “{}” trips {ids:?} {unspoken:?} {}",
                mutant.violates,
                mutant.name,
                verdicts.join("\n  ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
