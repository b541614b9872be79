//! Test doubles for the HTTP side, and property tests against hostile servers.

pub(super) mod fake_http;
mod hostile_responses;
