//! Every payload of every revision, in its newest shape.
//!
//! One file per area. The types are those of 2026-07-28 plus what only older revisions know; how they look
//! to an older peer is decided in [`revision`](crate::revision), never here. Names are those of the
//! specification: `CallToolParams` is what `tools/call` carries, `CallToolResult` what it answers.
//!
//! Reading is lenient: unknown members are ignored or, where the specification leaves an object open, kept.
//! Writing is exact: what is not set is not written. `resultType` and `_meta.serverInfo` belong to every
//! modern result alike and are therefore added around the serialized result by the server.

mod annotations;
mod cancellation;
mod capabilities;
mod completion;
mod content;
mod contents;
mod discover;
pub mod elicitation;
mod empty;
mod errors;
mod icon;
mod implementation;
mod input;
mod lifecycle;
mod logging;
mod number;
mod pagination;
mod progress;
mod prompts;
mod resources;
mod result;
mod roots;
mod sampling;
mod setters;
mod settings;
pub mod skills;
mod subscriptions;
pub mod tasks;
mod tools;

pub use annotations::{Annotations, Role};
pub use cancellation::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities, TaskRequests, TasksCapability,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference,
};
pub use content::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use contents::{BlobResourceContents, ResourceContents, TextResourceContents};
pub use discover::DiscoverResult;
pub use elicitation::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams,
};
pub use empty::{EmptyParams, EmptyResult};
pub use errors::{
    HeaderMismatchData, MissingCapabilityData, ResourceNotFoundData, UnsupportedVersionData,
    UrlElicitationRequiredData,
};
pub use icon::{Icon, IconTheme};
pub use implementation::Implementation;
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use lifecycle::{InitializeParams, InitializeResult};
pub use logging::{LogLevel, LoggingMessageParams, SetLevelParams, UnknownLogLevel};
pub use pagination::{Cursor, PaginatedParams};
pub use progress::ProgressParams;
pub use prompts::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceTemplate, ResourceUpdatedParams, SubscribeParams, UnsubscribeParams,
};
pub use result::{CacheScope, ResultType};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingMessage, StopReason, ToolChoice, ToolChoiceMode,
};
pub use subscriptions::{
    ListenParams, ListenResult, SubscriptionFilter, SubscriptionsAcknowledgedParams,
};
pub use tasks::{Task, TaskStatus};
pub use tools::{
    CallToolParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};

use serde_json::{Map, Value};

/// A JSON object whose members are not ours to know: a schema, arguments, settings.
pub type JsonObject = Map<String, Value>;
