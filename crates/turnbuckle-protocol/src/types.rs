//! Every payload of every revision, in its newest form.
//!
//! One file per area. The types are those of 2026-07-28 plus items that only older revisions have;
//! [`revision`](crate::revision) converts them for older peers. Names are those of the specification:
//! `CallToolParams` are the parameters of `tools/call`, `CallToolResult` is its result.
//!
//! Deserialization is lenient: unknown members are ignored or, where the specification leaves an object open,
//! preserved. Serialization is exact: unset members are omitted. The server adds `resultType` and `_meta.serverInfo`
//! to every serialized modern result.

/// Implements one builder method per listed field.
///
/// `optional` fields are wrapped in `Some`, `plain` ones are replaced. Every method accepts values that convert into
/// the type of the field, as in `tool.title("Add")`.
macro_rules! setters {
    ($type:ident {
        $(optional { $($optional:ident : $inner:ty),* $(,)? })?
        $(plain { $($plain:ident : $value:ty),* $(,)? })?
    }) => {
        impl $type {
            $($(
                #[doc = concat!("Sets `", stringify!($optional), "`.")]
                #[must_use]
                pub fn $optional(mut self, value: impl Into<$inner>) -> Self {
                    self.$optional = Some(value.into());
                    self
                }
            )*)?
            $($(
                #[doc = concat!("Sets `", stringify!($plain), "`.")]
                #[must_use]
                pub fn $plain(mut self, value: impl Into<$value>) -> Self {
                    self.$plain = value.into();
                    self
                }
            )*)?
        }
    };
}

/// Defines the result of a list method: one page of items, the cursor of the next page and the cache hints.
macro_rules! list_result {
    (
        $(#[$type_doc:meta])*
        pub struct $type:ident {
            $(#[$items_doc:meta])*
            pub $items:ident: Vec<$item:ty>,
        }
    ) => {
        $(#[$type_doc])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $type {
            $(#[$items_doc])*
            pub $items: Vec<$item>,
            /// The cursor of the next page.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<crate::types::Cursor>,
            /// The number of milliseconds for which the result may be cached.
            #[serde(
                default,
                deserialize_with = "crate::types::lenient_number::integer::optional",
                skip_serializing_if = "Option::is_none"
            )]
            pub ttl_ms: Option<u64>,
            /// The scope of the cached result.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub cache_scope: Option<crate::types::CacheScope>,
            /// The `_meta` object.
            #[serde(rename = "_meta", default, skip_serializing_if = "crate::meta::Meta::is_empty")]
            pub meta: crate::meta::Meta,
        }

        impl $type {
            /// Creates a page.
            pub fn new($items: impl Into<Vec<$item>>) -> Self {
                Self {
                    $items: $items.into(),
                    ..Self::default()
                }
            }
        }

        setters!($type {
            optional {
                next_cursor: crate::types::Cursor,
                ttl_ms: u64,
                cache_scope: crate::types::CacheScope,
            }
            plain { meta: crate::meta::Meta }
        });
    };
}

mod annotations;
mod base;
mod capabilities;
mod completion;
mod content_block;
pub mod elicitation;
mod errors;
mod input;
mod lenient_number;
mod lifecycle;
mod notifications;
mod prompts;
mod resource_contents;
mod resources;
mod roots;
mod sampling;
pub mod skills;
mod subscriptions;
pub mod tasks;
mod tools;

pub use annotations::{Annotations, Icon, IconTheme, Role};
pub use base::{CacheScope, Cursor, EmptyParams, EmptyResult, PaginatedParams, ResultType};
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListCapability, ResourcesCapability,
    RootsCapability, SamplingCapability, ServerCapabilities, TaskRequests, TasksCapability,
};
pub use completion::{
    CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionContext,
    CompletionReference,
};
pub use content_block::{
    AudioContent, ContentBlock, EmbeddedResource, ImageContent, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use elicitation::{
    ElicitAction, ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams,
    ElicitationCompleteParams,
};
pub use errors::{
    HeaderMismatchData, MissingCapabilityData, ResourceNotFoundData, UnsupportedVersionData,
    UrlElicitationRequiredData,
};
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use lifecycle::{DiscoverResult, Implementation, InitializeParams, InitializeResult};
pub use notifications::{
    CancelledParams, LogLevel, LoggingMessageParams, ProgressParams, SetLevelParams,
    UnknownLogLevel,
};
pub use prompts::{
    GetPromptParams, GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
};
pub use resource_contents::{BlobResourceContents, ResourceContents, TextResourceContents};
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    Resource, ResourceTemplate, ResourceUpdatedParams, SubscribeParams, UnsubscribeParams,
};
pub use roots::{ListRootsResult, Root};
pub use sampling::{
    CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint, ModelPreferences,
    SamplingMessage, StopReason, ToolChoice, ToolChoiceMode,
};
use serde_json::{Map, Value};
pub use subscriptions::{
    ListenParams, ListenResult, SubscriptionFilter, SubscriptionsAcknowledgedParams,
};
pub use tasks::{Task, TaskStatus};
pub use tools::{
    CallToolParams, CallToolResult, ListToolsResult, TaskSupport, Tool, ToolAnnotations,
    ToolExecution,
};

/// A JSON object with arbitrary members: a schema, arguments, settings.
pub type JsonObject = Map<String, Value>;
