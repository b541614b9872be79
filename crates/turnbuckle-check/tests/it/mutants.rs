//! Every rule that can fail has a mutant server that fails this rule only.

mod advice;
mod authorization;
pub(crate) mod base;
mod caching;
mod cancellation;
mod completion;
mod host_origin;
mod http;
mod http_sse;
mod input;
mod lifecycle;
mod lifecycle_mixing;
mod logging;
mod mcp_headers;
mod message_schema;
mod pagination;
mod progress;
mod prompts;
mod resources;
mod robustness;
mod sessions;
mod stdio;
mod streams;
mod subscriptions;
pub(crate) mod tasks;
mod tools;

use turnbuckle_check::{catalog, report::RuleStatus, rule::RequirementLevel};

use crate::{mutant::Mutant, named_requirements::wrong_requirement};

fn all() -> Vec<Mutant> {
    [
        base::mutants(),
        message_schema::mutants(),
        lifecycle::mutants(),
        lifecycle_mixing::mutants(),
        stdio::mutants(),
        http::mutants(),
        mcp_headers::mutants(),
        sessions::mutants(),
        streams::mutants(),
        host_origin::mutants(),
        http_sse::mutants(),
        tools::mutants(),
        resources::mutants(),
        prompts::mutants(),
        completion::mutants(),
        logging::mutants(),
        progress::mutants(),
        cancellation::mutants(),
        pagination::mutants(),
        subscriptions::mutants(),
        input::mutants(),
        tasks::mutants(),
        caching::mutants(),
        authorization::mutants(),
        robustness::mutants(),
        advice::mutants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_must_rule_has_a_mutant() {
    let mutants = all();
    let without: Vec<_> = catalog::for_servers()
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
            let outcomes: Vec<_> = violated.iter().map(|result| &result.outcome).collect();
            failures.push(format!(
                "{}: “{}” fails {ids:?} {unsupported:?} {outcomes:#?}",
                mutant.violates, mutant.name
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
