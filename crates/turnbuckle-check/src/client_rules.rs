//! The rules for clients, a file per area.

/// Rules about JSON-RPC messages, `_meta` and the lifecycle.
mod base {
    pub(super) mod json_rpc;
    pub(super) mod lifecycle;
    pub(super) mod lifecycle_mixing;
    pub(super) mod message_schema;
    pub(super) mod meta;
}
/// Rules about server requests, round trips, pagination, cancellation, progress and tasks.
mod features {
    pub(super) mod cancellation_progress_tasks;
    pub(super) mod pagination;
    pub(super) mod round_trips;
    pub(super) mod server_requests;
}
#[cfg(test)]
mod tests;
/// Rules about stdio, HTTP and authorization.
mod transport {
    pub(super) mod authorization;
    pub(super) mod http;
    pub(super) mod mcp_headers;
    pub(super) mod ndjson;
    pub(super) mod sessions;
    pub(super) mod streams;
}

use crate::rule::Rule;

/// All client rules, by area.
pub(crate) const AREAS: &[&[Rule]] = &[
    base::json_rpc::RULES,
    base::message_schema::RULES,
    base::meta::RULES,
    base::lifecycle::RULES,
    base::lifecycle_mixing::RULES,
    transport::ndjson::RULES,
    transport::http::RULES,
    transport::mcp_headers::RULES,
    transport::sessions::RULES,
    transport::streams::RULES,
    features::server_requests::RULES,
    features::round_trips::RULES,
    features::pagination::RULES,
    features::cancellation_progress_tasks::RULES,
    transport::authorization::RULES,
];
