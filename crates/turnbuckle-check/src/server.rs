//! The rules for servers, a file for each area.

mod authorization;
mod base;
mod caching;
mod cancellation;
mod completion;
mod eras;
mod errors;
mod http;
mod http_sse;
mod input;
mod lifecycle;
mod lists;
mod logging;
mod meta;
mod mirrored;
mod models;
mod origins;
mod pagination;
mod poke;
mod progress;
mod prompts;
mod resources;
mod robustness;
mod sessions;
mod shapes;
mod stateless;
mod stdio;
mod streams;
mod subscriptions;
mod tasks;
mod tools;

use serde_json::Value;

use crate::outcome::{Outcome, Unmet};
use crate::rule::Rule;
use crate::visit::Visit;

pub(crate) use self::shapes::{Findings, Gathered};

/// All of them, area by area.
pub(crate) const AREAS: &[&[Rule]] = &[
    base::RULES,
    errors::RULES,
    meta::RULES,
    shapes::RULES,
    lifecycle::RULES,
    stateless::RULES,
    eras::RULES,
    stdio::RULES,
    http::RULES,
    mirrored::RULES,
    sessions::RULES,
    streams::RULES,
    origins::RULES,
    http_sse::RULES,
    tools::RULES,
    resources::RULES,
    prompts::RULES,
    completion::RULES,
    logging::RULES,
    progress::RULES,
    cancellation::RULES,
    pagination::RULES,
    subscriptions::RULES,
    input::RULES,
    tasks::RULES,
    caching::RULES,
    authorization::RULES,
    robustness::RULES,
    models::RULES,
];

/// Makes sure that a method of earlier revisions is unknown.
///
/// By which error an unknown method is refused is for another rule to say.
async fn is_gone(visit: &Visit, method: &str, params: Value) -> Outcome {
    let answer = visit
        .session()
        .await?
        .ask(method, params)
        .await
        .map_err(Unmet::aside)?;
    match answer.error()? {
        -32601 => answer.seen(),
        _ => Err(Unmet::not_tested(format!("{} was seen", answer.describe()))),
    }
}
