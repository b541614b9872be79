//! A Model Context Protocol gateway: clients of any revision and transport call servers of any revision and transport.
//!
//! A [`Gateway`] has one or more [`Upstream`] servers. [`Gateway::start`] connects to them, and
//! [`RunningGateway::server`] returns a [`Server`](turnbuckle_server::Server) that is served like any other. Requests are
//! relayed as raw JSON; they are converted only where the revisions of client and server differ.
//!
//! *Downstream* is towards the client, *upstream* towards the server. A *client request* is elicitation, sampling or
//! `roots/list`: a request in the legacy era, an entry of `inputRequests` in the modern era. The gateway converts between
//! them: a client request of a legacy server suspends the call of a modern client (`calls/suspended.rs`), and an
//! `input_required` result of a modern server becomes client requests to a legacy client (`calls.rs`).

mod audit;
mod calls;
mod catalog;
mod convert;
mod errors;
mod gateway;
mod hops;
mod lifecycle;
mod metrics;
mod observation;
mod policy;
mod raw_json;
mod reload;
mod routing;
mod tasks;
pub mod testing;
mod tool_lock;
mod upstream;
mod uri_spellings;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use ::http::HeaderName;
pub use audit::{AuditRecord, AuditSink};
pub use gateway::{Gateway, PrefixMode, RunningGateway, StartError};
pub use metrics::{GatewayMetrics, OperationMetrics, ServerMetrics};
pub use observation::Outcome;
pub use reload::Reload;
pub use upstream::{
    CallerLogin, CallerLogins, LoginCompletion, Sharing, Upstream, UpstreamCaller, UpstreamState,
    UpstreamStatus, is_forwardable_header,
};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks leaves an invalid value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
