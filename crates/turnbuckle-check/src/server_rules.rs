//! The rules for servers, a file per area.

/// Rules about JSON-RPC messages, errors, `_meta`, the lifecycle and robustness.
mod base {
    pub(super) mod errors;
    pub(super) mod json_rpc;
    pub(super) mod lifecycle;
    pub(super) mod lifecycle_mixing;
    mod malformed_input;
    pub(super) mod message_schema;
    pub(super) mod meta;
    pub(super) mod robustness;
    pub(super) mod stateless;
}
/// Rules about the features of servers: tools, resources, prompts, utilities, input requests and tasks, and advice.
mod features {
    pub(super) mod advice;
    pub(super) mod caching;
    pub(super) mod cancellation;
    pub(super) mod completion;
    pub(super) mod input;
    mod lists;
    pub(super) mod logging;
    pub(super) mod pagination;
    pub(super) mod progress;
    pub(super) mod prompts;
    pub(super) mod resources;
    pub(super) mod subscriptions;
    pub(super) mod tasks;
    pub(super) mod tools;
}
/// Rules about stdio, HTTP and authorization.
mod transport {
    pub(super) mod authorization;
    pub(super) mod host_origin;
    pub(super) mod http;
    pub(super) mod http_sse;
    pub(super) mod mcp_headers;
    pub(super) mod sessions;
    pub(super) mod stdio;
    pub(super) mod streams;
    mod unauthenticated;
}

use serde_json::Value;

pub(crate) use self::base::{
    message_schema::{CollectedMessages, SchemaFindings},
    meta::violated_key_format,
    robustness::{STAYS_ALIVE, stays_alive},
};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{NotPassed, Outcome},
    },
    rule::Rule,
};

/// All rules, by area.
pub(crate) const AREAS: &[&[Rule]] = &[
    base::json_rpc::RULES,
    base::errors::RULES,
    base::meta::RULES,
    base::message_schema::RULES,
    base::lifecycle::RULES,
    base::stateless::RULES,
    base::lifecycle_mixing::RULES,
    transport::stdio::RULES,
    transport::http::RULES,
    transport::mcp_headers::RULES,
    transport::sessions::RULES,
    transport::streams::RULES,
    transport::host_origin::RULES,
    transport::http_sse::RULES,
    features::tools::RULES,
    features::resources::RULES,
    features::prompts::RULES,
    features::completion::RULES,
    features::logging::RULES,
    features::progress::RULES,
    features::cancellation::RULES,
    features::pagination::RULES,
    features::subscriptions::RULES,
    features::input::RULES,
    features::tasks::RULES,
    features::caching::RULES,
    transport::authorization::RULES,
    base::robustness::RULES,
    features::advice::RULES,
];

/// Checks that a method of earlier revisions is unknown.
///
/// Another rule checks the error code for unknown methods.
async fn check_removed(ctx: &CheckContext, method: &str, params: Value) -> Outcome {
    let response = ctx
        .session()
        .await?
        .request(method, params)
        .await
        .map_err(NotPassed::into_not_tested)?;
    match response.error()? {
        -32601 => response.evidence(),
        _ => Err(NotPassed::not_tested(format!(
            "the server returned {}",
            response.describe()
        ))),
    }
}
