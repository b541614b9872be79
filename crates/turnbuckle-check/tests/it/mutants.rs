//! Every rule that can fail has a server that fails it, and fails nothing else.

mod authorization;
pub(crate) mod base;
mod caching;
mod cancellation;
mod completion;
mod eras;
mod http;
mod http_sse;
mod input;
mod lifecycle;
mod logging;
mod mirrored;
mod models;
mod origins;
mod pagination;
mod progress;
mod prompts;
mod resources;
mod robustness;
mod sessions;
mod shapes;
mod stdio;
mod streams;
mod subscriptions;
pub(crate) mod tasks;
mod tools;

use turnbuckle_check::{catalogue, report::Grade, rule::Level};

use crate::mutant::Mutant;

fn all() -> Vec<Mutant> {
    [
        base::mutants(),
        shapes::mutants(),
        lifecycle::mutants(),
        eras::mutants(),
        stdio::mutants(),
        http::mutants(),
        mirrored::mutants(),
        sessions::mutants(),
        streams::mutants(),
        origins::mutants(),
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
        models::mutants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn every_rule_that_can_fail_has_a_mutant() {
    let mutants = all();
    let without: Vec<_> = catalogue::for_servers()
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
            let verdicts: Vec<_> = broken.iter().map(|ruling| &ruling.verdict).collect();
            wrong.push(format!(
                "{}: “{}” trips {ids:?} {unspoken:?} {verdicts:#?}",
                mutant.trips, mutant.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
