//! Test doubles for the HTTP side, and property tests against hostile servers.

mod array_documents;
pub(super) mod fake_http;
mod hostile_responses;
