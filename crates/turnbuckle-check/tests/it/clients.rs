//! Clients: the good client, which passes all rules, and mutants with one violation each.

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
use crate::named_requirements::wrong_requirement;

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
fn every_must_rule_has_a_mutant() {
    let mutants = all();
    let without: Vec<_> = catalog::for_clients()
        .filter(|rule| rule.level() == RequirementLevel::Fail)
        .filter(|rule| !mutants.iter().any(|mutant| mutant.violates == rule.id))
        .map(|rule| rule.id)
        .collect();
    assert!(without.is_empty(), "{without:#?}");
}

/// Checks all mutants of an area; each must fail its rule and no other.
async fn assert_each_fails_its_rule(mutants: Vec<Mutant>) {
    let mut failures = Vec::new();
    for mutant in mutants {
        let report = mutant.check().await;
        let violated: Vec<_> = report
            .results()
            .filter(|(_, result)| match result.status() {
                RuleStatus::Fail => true,
                RuleStatus::Warn | RuleStatus::Advice => result.rule.id == mutant.violates,
                _ => false,
            })
            .map(|(_, result)| result)
            .collect();
        let ids: Vec<_> = violated.iter().map(|result| result.rule.id).collect();
        failures.extend(wrong_requirement(
            &report,
            mutant.violates,
            mutant.name,
            mutant.requirement,
        ));
        if ids != [mutant.violates] {
            let unsupported = report
                .runs
                .iter()
                .filter_map(|run| run.unsupported.as_ref());
            let unsupported: Vec<_> = unsupported.collect();
            let outcomes: Vec<_> = violated
                .iter()
                .map(|result| good::brief(&result.outcome))
                .collect();
            failures.push(format!(
                "{}: “{}” fails {ids:?} {unsupported:?} {}",
                mutant.violates,
                mutant.name,
                outcomes.join("\n  ")
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
