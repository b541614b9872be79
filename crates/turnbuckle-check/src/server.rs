//! The rules for servers, a file for each area.

mod authorization;
mod base;
mod caching;
mod cancellation;
mod completion;
mod eras;
mod http;
mod http_sse;
mod input;
mod lifecycle;
mod lists;
mod logging;
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
mod tasks;
mod tools;

use crate::rule::Rule;

/// All of them, area by area.
pub(crate) const AREAS: &[&[Rule]] = &[
    base::RULES,
    shapes::RULES,
    lifecycle::RULES,
    eras::RULES,
    stdio::RULES,
    http::RULES,
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
