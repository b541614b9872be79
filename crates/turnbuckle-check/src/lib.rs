//! Checks servers and clients against the Model Context Protocol specification.
//!
//! A [`Rule`] names the requirements that it covers and how to test them. [`check_server`] runs all rules that apply
//! to a [`ServerTarget`], in every revision that the server supports, and returns a [`Report`]. [`check_client`] does
//! the same for a [`ClientTarget`].
//!
//! - [`rule`]: the rule type; [`catalog`]: all rules.
//! - `engine`: runs rules and records the transcript; `probe`: reads what a server has and exercises it once.
//! - `session`: one session with a server; `wire`: bytes in and out.
//! - `message_schema`: the shape of every message, per revision.
//! - `server_rules`, `client_rules`: the rules, a file per area.
//! - `mock_server`: the server that clients are run against.
//! - [`report`]: the results and their formats; [`baseline`]: known violations.
//! - [`checklist`]: the lines of the compliance checklist and the rules that cover them.

pub mod baseline;
pub mod catalog;
pub mod checklist;
mod client_rules;
/// Runs rules against a server and records what was exchanged.
mod engine {
    pub(crate) mod check_context;
    pub(crate) mod outcome;
    pub(crate) mod run;
    pub(crate) mod transcript;
    pub(crate) mod transcript_query;
}
mod error;
mod message_schema;
mod mock_server;
mod options;
mod probe;
mod redact;
pub mod report;
pub mod rule;
mod server_rules;
mod session;
mod target;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use engine::run::check_server;
pub use error::CheckError;
pub use mock_server::{
    ClientCommandError, ClientTarget, MockServerAddress, check_client, stdio_bridge,
};
pub use options::{CheckMessage, CheckOptions, CheckProgress};
pub use report::Report;
pub use rule::Rule;
pub use target::ServerTarget;

/// Locks a mutex, ignoring poisoning: no code under these locks leaves an invalid value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
