//! A Model Context Protocol server built from plain functions.
//!
//! Write functions, add them to a [`Server`], and serve it over stdio or HTTP. All revisions of the protocol are
//! supported at the same time; handlers do not depend on the revision of the client.

mod catalog;
mod context;
mod dispatch;
mod handle;
pub mod http;
mod input;
mod lifecycle;
pub mod middleware;
pub mod ndjson;
mod prompts;
mod request;
mod resources;
mod server;
#[cfg(feature = "skills")]
mod skills;
pub mod stdio;
mod sync;
mod tasks;
pub mod testing;
mod tools;

pub use catalog::{
    cache_hint::CacheHint,
    completion::{CompletionRequest, IntoCompleter},
    scopes::InvalidScope,
};
pub use context::Context;
pub use handle::{Handle, HandleError, HandleValue};
pub use input::{ClientRequestError, Elicitation, ElicitationOutcome, SamplingBuilder};
pub use lifecycle::ServedEras;
pub use prompts::{Messages, Prompt, PromptHandler};
pub use request::error::{InternalError, RequestError, ResultExt};
pub use resources::{
    Contents, InvalidResourceUri, ReadHandler, ReadTemplateHandler, Resource, ResourceTemplate,
    Variables,
};
pub use server::{
    InvalidPageSize, InvalidStateKeys, MountError, Server,
    extension::{Extension, ExtensionMethod, InvalidExtension, MethodHandler},
    relay,
};
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillError, Skills};
pub use tools::{
    BlockingHandler, InfallibleHandler, IntoToolResult, InvalidTool, RawToolHandler,
    SchemaValidator, Tool, ToolError, ToolHandler, ToolResult,
};
pub use turnbuckle_protocol::types::TaskSupport;
