//! A Model Context Protocol server built from plain functions.
//!
//! Write functions, add them to a [`Server`], and serve it over stdio or HTTP. All revisions of the protocol are
//! supported at the same time; handlers do not depend on the revision of the client.

mod arguments;
mod cache_hint;
mod catalog;
mod completion;
mod context;
mod dispatch;
mod extension;
mod handle;
pub mod http;
mod incident;
mod input;
mod lifecycle;
mod list_cache;
mod log_limiter;
pub mod middleware;
pub mod ndjson;
mod prompts;
mod request;
mod request_error;
mod resources;
mod response;
mod schema;
mod scopes;
mod server;
#[cfg(feature = "skills")]
mod skills;
mod span;
pub mod stdio;
mod subscriptions;
mod sync;
mod tasks;
pub mod testing;
mod timestamp;
mod tools;
mod visibility;

pub use cache_hint::CacheHint;
pub use completion::{CompletionRequest, IntoCompleter};
pub use context::Context;
pub use extension::{Extension, ExtensionMethod, MethodHandler};
pub use handle::{Handle, HandleError, HandleValue};
pub use input::{ClientRequestError, Elicitation, ElicitationOutcome, Form, SamplingBuilder};
pub use prompts::{Messages, Prompt, PromptHandler};
pub use request_error::RequestError;
pub use resources::{Contents, ReadHandler, Resource, ResourceTemplate, Variables};
pub use server::{MountError, Server};
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillError, Skills};
pub use tools::{BlockingHandler, IntoToolResult, Tool, ToolError, ToolHandler, ToolResult};
pub use turnbuckle_protocol::types::TaskSupport;
