//! A Model Context Protocol server from plain functions.
//!
//! Write functions, put them into a [`Server`], and serve it on stdio or on HTTP. Every revision of the protocol is
//! spoken at once; handlers never learn which one their caller speaks.

mod arguments;
mod catalog;
mod completion;
mod context;
mod dispatch;
mod exchange;
pub mod http;
mod incident;
mod input;
mod lifecycle;
pub mod lines;
pub mod middleware;
mod outbox;
mod prompts;
mod reply;
mod request_error;
mod resources;
mod schema;
mod server;
mod shape;
mod span;
pub mod stdio;
mod subscriptions;
pub mod testing;
mod tools;
#[cfg(not(feature = "validation"))]
mod unvalidated;
#[cfg(feature = "validation")]
mod validate;

#[cfg(not(feature = "validation"))]
use unvalidated as validate;

pub use completion::{Completing, IntoCompleter};
pub use context::Context;
pub use input::{AskError, Elicitation, Elicited, Form, Sampling};
pub use prompts::{Messages, Prompt, PromptHandler};
pub use reply::CacheHint;
pub use request_error::RequestError;
pub use resources::{Contents, ReadHandler, Resource, ResourceTemplate, Variables};
pub use server::Server;
pub use tools::{BlockingHandler, IntoOutput, Output, Tool, ToolError, ToolHandler};
