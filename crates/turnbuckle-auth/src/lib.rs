//! Authorization for MCP, step by step.
//!
//! One file per step, and no HTTP in any of them: what is read was fetched by somebody else, and what is written is sent by
//! somebody else. So far there is the language in which both sides speak about it:
//!
//! - [`Challenge`]: what a server that refuses says in `WWW-Authenticate`, read and written.
//! - [`Scopes`]: what a token is good for, and what an operation needs.

mod challenge;
mod scope;

pub use challenge::{Challenge, InvalidChallenge};
pub use scope::{InvalidScope, Scopes};
