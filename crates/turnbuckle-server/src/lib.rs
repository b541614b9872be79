//! A Model Context Protocol server from plain functions.
//!
//! Write functions, put them into a [`Server`], and serve it on stdio or on HTTP. Every revision of the protocol is
//! spoken at once; handlers never learn which one their caller speaks.

mod arguments;
mod catalog;
mod clock;
mod completion;
mod context;
mod dispatch;
mod ending;
mod exchange;
mod extension;
mod handle;
pub mod http;
mod incident;
mod input;
mod lifecycle;
pub mod lines;
mod log_limiter;
pub mod middleware;
mod outbox;
mod prompts;
mod reply;
mod request_error;
mod resources;
mod schema;
mod scopes;
mod seldom;
mod server;
mod session_users;
mod shape;
mod short_queue;
#[cfg(feature = "skills")]
mod skills;
mod source;
mod span;
pub mod stdio;
mod subscriptions;
mod tasks;
pub mod testing;
mod timestamp;
mod together;
mod tools;
#[cfg(not(feature = "validation"))]
mod unvalidated;
#[cfg(feature = "validation")]
mod validate;
mod visibility;
mod written;

#[cfg(not(feature = "validation"))]
use unvalidated as validate;

pub use completion::{Completing, IntoCompleter};
pub use context::Context;
pub use extension::{Extension, ExtensionMethod, MethodHandler};
pub use handle::{Handle, HandleError, Held};
pub use input::{AskError, Elicitation, Elicited, Form, Sampling};
pub use prompts::{Messages, Prompt, PromptHandler};
pub use reply::CacheHint;
pub use request_error::RequestError;
pub use resources::{Contents, ReadHandler, Resource, ResourceTemplate, Variables};
pub use server::{MountError, Server};
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillError, Skills};
pub use tools::{BlockingHandler, IntoOutput, Output, Tool, ToolError, ToolHandler};
pub use turnbuckle_protocol::types::TaskSupport;
