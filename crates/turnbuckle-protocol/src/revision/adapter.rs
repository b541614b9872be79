//! Visits the items of every payload: tools, titles, content blocks and so on.
//!
//! A revision file defines what happens to a tool, a title or a content block; this file knows which payloads contain
//! them.

use serde_json::Value;

use super::{Revision, VersionedPayload, downgrade, upgrade};
use crate::{
    meta::Meta,
    types::{
        skills,
        tasks::{self, legacy},
        *,
    },
};

/// The changes that a revision makes to the items of payloads. By default an item stays unchanged.
#[expect(unused_variables, reason = "the parameter names are documentation")]
pub(super) trait RevisionAdapter {
    /// The `_meta` of parameters and results.
    fn meta(&self, meta: &mut Meta) {}
    /// The `_meta` of nested items: tools, resources, content blocks.
    fn nested_meta(&self, meta: &mut Meta) {}
    /// A display name.
    fn title(&self, title: &mut Option<String>) {}
    fn icons(&self, icons: &mut Vec<Icon>) {}
    fn annotations(&self, annotations: &mut Annotations) {}
    fn implementation(&self, implementation: &mut Implementation) {}
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {}
    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {}
    fn caching(&self, ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>) {}
    fn input_responses(&self, responses: &mut Option<InputResponses>, state: &mut Option<String>) {}
    /// The request to run as a task.
    fn task(&self, task: &mut Option<legacy::TaskMetadata>) {}
    fn tool(&self, tool: &mut Tool) {}
    fn call_result(&self, result: &mut CallToolResult) {}
    fn structured_content(&self, content: &mut Option<Value>) {}
    fn block(&self, block: &mut ContentBlock) {}
    fn create_message(&self, params: &mut CreateMessageParams) {}
    fn created_message(&self, result: &mut CreateMessageResult) {}
    fn elicit(&self, params: &mut ElicitParams) {}
    fn elicited(&self, result: &mut ElicitResult) {}
    fn progress(&self, params: &mut ProgressParams) {}
    fn complete(&self, params: &mut CompleteParams) {}
}

/// A payload or item that a [`RevisionAdapter`] can be applied to.
pub(super) trait AdaptTo {
    /// Set if it contains something that older revisions have and the newest does not.
    const HAS_RETIRED: bool = false;

    /// Applies `adapter` to all items inside.
    fn adapt(&mut self, adapter: &impl RevisionAdapter);

    /// Does the same, but only if something inside may be retired: the newest revision costs nothing.
    fn adapt_retired(&mut self, adapter: &impl RevisionAdapter) {
        if Self::HAS_RETIRED {
            self.adapt(adapter);
        }
    }
}

macro_rules! versioned_payload {
    ($($type:ty),* $(,)?) => {$(
        impl VersionedPayload for $type {
            fn downgrade_to(&mut self, to: Revision) {
                downgrade(self, to);
            }

            fn upgrade_from(&mut self, from: Revision) {
                upgrade(self, from);
            }
        }
    )*};
}

/// Payloads with nothing but `_meta` to adapt.
macro_rules! only_meta {
    ($($type:ty),* $(,)?) => {$(
        impl AdaptTo for $type {
            fn adapt(&mut self, adapter: &impl RevisionAdapter) {
                adapter.meta(&mut self.meta);
            }
        }

        versioned_payload!($type);
    )*};
}

only_meta!(
    CancelledParams,
    CompleteResult,
    ElicitationCompleteParams,
    EmptyParams,
    EmptyResult,
    ListenParams,
    ListenResult,
    LoggingMessageParams,
    PaginatedParams,
    ResourceUpdatedParams,
    SetLevelParams,
    SubscribeParams,
    skills::GetSkillParams,
    skills::ReadDirectoryParams,
    tasks::CreateTaskResult,
    tasks::GetTaskParams,
    tasks::UpdateTaskParams,
    legacy::CreateTaskResult,
    legacy::GetTaskResult,
    legacy::ListTasksResult,
);

versioned_payload!(
    CallToolParams,
    CallToolResult,
    ClientCapabilities,
    CompleteParams,
    ContentBlock,
    CreateMessageParams,
    CreateMessageResult,
    DiscoverResult,
    ElicitParams,
    ElicitResult,
    GetPromptParams,
    GetPromptResult,
    Implementation,
    InitializeParams,
    InitializeResult,
    InputRequest,
    InputRequiredResult,
    ListPromptsResult,
    ListResourceTemplatesResult,
    ListResourcesResult,
    ListRootsResult,
    ListToolsResult,
    ProgressParams,
    Prompt,
    ReadResourceParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ServerCapabilities,
    Tool,
    UrlElicitationRequiredData,
    skills::GetSkillResult,
    skills::ListSkillsResult,
    skills::ReadDirectoryResult,
    tasks::GetTaskResult,
);

impl AdaptTo for InitializeParams {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        self.capabilities.adapt(adapter);
        self.client_info.adapt(adapter);
    }
}

impl AdaptTo for InitializeResult {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        self.capabilities.adapt(adapter);
        self.server_info.adapt(adapter);
    }
}

impl AdaptTo for DiscoverResult {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        self.capabilities.adapt(adapter);
    }
}

impl AdaptTo for ClientCapabilities {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.client_capabilities(self);
    }
}

impl AdaptTo for ServerCapabilities {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.server_capabilities(self);
    }
}

impl AdaptTo for Implementation {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.implementation(self);
        adapter.title(&mut self.title);
        adapter.icons(&mut self.icons);
    }
}

impl AdaptTo for ListToolsResult {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.tools, adapter);
    }
}

impl AdaptTo for Tool {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.tool(self);
        adapter.title(&mut self.title);
        adapter.icons(&mut self.icons);
        adapter.nested_meta(&mut self.meta);
    }
}

impl AdaptTo for CallToolParams {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.task(&mut self.task);
        adapter.input_responses(&mut self.input_responses, &mut self.request_state);
    }
}

impl AdaptTo for CallToolResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.call_result(self);
        adapter.structured_content(&mut self.structured_content);
        walk_all(&mut self.content, adapter);
    }
}

impl AdaptTo for ListResourcesResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.resources, adapter);
    }
}

impl AdaptTo for skills::ReadDirectoryResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.resources, adapter);
    }
}

impl AdaptTo for skills::ListSkillsResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
    }
}

impl AdaptTo for skills::GetSkillResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
    }
}

impl AdaptTo for ListResourceTemplatesResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.resource_templates, adapter);
    }
}

impl AdaptTo for Resource {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.title(&mut self.title);
        adapter.icons(&mut self.icons);
        annotations(&mut self.annotations, adapter);
        adapter.nested_meta(&mut self.meta);
    }
}

impl AdaptTo for ResourceTemplate {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.title(&mut self.title);
        adapter.icons(&mut self.icons);
        annotations(&mut self.annotations, adapter);
        adapter.nested_meta(&mut self.meta);
    }
}

impl AdaptTo for ReadResourceParams {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.input_responses(&mut self.input_responses, &mut self.request_state);
    }
}

impl AdaptTo for ReadResourceResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        for contents in &mut self.contents {
            adapter.nested_meta(contents.meta_mut());
        }
    }
}

impl AdaptTo for ListPromptsResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.prompts, adapter);
    }
}

impl AdaptTo for Prompt {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.title(&mut self.title);
        adapter.icons(&mut self.icons);
        adapter.nested_meta(&mut self.meta);
        for argument in self.arguments.iter_mut().flatten() {
            adapter.title(&mut argument.title);
        }
    }
}

impl AdaptTo for GetPromptParams {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.input_responses(&mut self.input_responses, &mut self.request_state);
    }
}

impl AdaptTo for GetPromptResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        for message in &mut self.messages {
            message.content.adapt(adapter);
        }
    }
}

impl AdaptTo for CompleteParams {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.complete(self);
        if let CompletionReference::Prompt { title, .. } = &mut self.reference {
            adapter.title(title);
        }
    }
}

impl AdaptTo for ProgressParams {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.progress(self);
    }
}

impl AdaptTo for CreateMessageParams {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.task(&mut self.task);
        adapter.create_message(self);
        for message in &mut self.messages {
            adapter.nested_meta(&mut message.meta);
            walk_all(&mut message.content, adapter);
        }
        for tool in self.tools.iter_mut().flatten() {
            tool.adapt(adapter);
        }
    }
}

impl AdaptTo for CreateMessageResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.created_message(self);
        walk_all(&mut self.content, adapter);
    }
}

impl AdaptTo for ElicitParams {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        let (meta, task) = match self {
            Self::Form(form) => (&mut form.meta, &mut form.task),
            Self::Url(url) => (&mut url.meta, &mut url.task),
        };
        adapter.meta(meta);
        adapter.task(task);
        adapter.elicit(self);
    }
}

impl AdaptTo for ElicitResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        adapter.elicited(self);
    }
}

impl AdaptTo for ListRootsResult {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        for root in &mut self.roots {
            adapter.nested_meta(&mut root.meta);
        }
    }
}

impl AdaptTo for InputRequiredResult {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        for request in self.input_requests.values_mut() {
            request.adapt(adapter);
        }
    }
}

impl AdaptTo for InputRequest {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        match self {
            Self::CreateMessage(params) => params.adapt(adapter),
            Self::ListRoots(params) => params.adapt(adapter),
            Self::Elicit(params) => params.adapt(adapter),
            Self::Unknown { .. } => {}
        }
    }
}

impl AdaptTo for tasks::GetTaskResult {
    const HAS_RETIRED: bool = true;

    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        adapter.meta(&mut self.meta);
        for request in self
            .input_requests
            .iter_mut()
            .flat_map(|map| map.values_mut())
        {
            request.adapt(adapter);
        }
    }
}

impl AdaptTo for UrlElicitationRequiredData {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        for url in &mut self.elicitations {
            let mut params = ElicitParams::Url(url.clone());
            params.adapt(adapter);
            if let ElicitParams::Url(lowered) = params {
                *url = lowered;
            }
        }
    }
}

impl AdaptTo for ContentBlock {
    fn adapt(&mut self, adapter: &impl RevisionAdapter) {
        // The whole block first, so that a replacement is adapted and not the original.
        adapter.block(self);
        let (hints, meta) = match self {
            Self::Text(text) => (&mut text.annotations, &mut text.meta),
            Self::Image(image) => (&mut image.annotations, &mut image.meta),
            Self::Audio(audio) => (&mut audio.annotations, &mut audio.meta),
            Self::ResourceLink(resource) => return resource.adapt(adapter),
            Self::Resource(embedded) => {
                adapter.nested_meta(embedded.resource.meta_mut());
                (&mut embedded.annotations, &mut embedded.meta)
            }
            Self::ToolUse(call) => return adapter.nested_meta(&mut call.meta),
            Self::ToolResult(result) => {
                adapter.structured_content(&mut result.structured_content);
                walk_all(&mut result.content, adapter);
                return adapter.nested_meta(&mut result.meta);
            }
            Self::Unknown(_) => return,
        };
        annotations(hints, adapter);
        adapter.nested_meta(meta);
    }
}

fn walk_all(things: &mut [impl AdaptTo], adapter: &impl RevisionAdapter) {
    for thing in things {
        thing.adapt(adapter);
    }
}

fn annotations(annotations: &mut Option<Annotations>, adapter: &impl RevisionAdapter) {
    if let Some(annotations) = annotations {
        adapter.annotations(annotations);
    }
}
