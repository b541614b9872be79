//! The way through a payload: which things it is made of, wherever they are.
//!
//! A revision says what it does to a tool, a title, a content block; this file knows where tools, titles and
//! content blocks are.

use serde_json::Value;

use super::{Revision, Versioned, lower, raise};
use crate::{
    meta::Meta,
    types::{
        skills,
        tasks::{self, legacy},
        *,
    },
};

/// What a revision does to the things that payloads are made of. What it does not mention stays as it is.
#[expect(unused_variables, reason = "the names say what is passed")]
pub(super) trait Differences {
    /// The `_meta` of parameters and results.
    fn meta(&self, meta: &mut Meta) {}
    /// The `_meta` of what is inside them: tools, resources, content blocks.
    fn nested_meta(&self, meta: &mut Meta) {}
    /// A name for people.
    fn title(&self, title: &mut Option<String>) {}
    fn icons(&self, icons: &mut Vec<Icon>) {}
    fn annotations(&self, annotations: &mut Annotations) {}
    fn implementation(&self, implementation: &mut Implementation) {}
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {}
    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {}
    fn caching(&self, ttl_ms: &mut Option<u64>, scope: &mut Option<CacheScope>) {}
    fn answers(&self, responses: &mut Option<InputResponses>, state: &mut Option<String>) {}
    /// The wish that a request becomes a task.
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

/// A thing that differences can be applied to.
pub(super) trait Walk {
    /// Whether it holds something that older revisions have and the newest has not.
    const RETIRED: bool = false;

    /// Shows everything inside to `differences`.
    fn walk(&mut self, differences: &impl Differences);

    /// Does the same, but only if something inside can have been retired: the newest revision costs nothing.
    fn walk_retired(&mut self, differences: &impl Differences) {
        if Self::RETIRED {
            self.walk(differences);
        }
    }
}

macro_rules! versioned {
    ($($type:ty),* $(,)?) => {$(
        impl Versioned for $type {
            fn lower(&mut self, to: Revision) {
                lower(self, to);
            }

            fn raise(&mut self, from: Revision) {
                raise(self, from);
            }
        }
    )*};
}

/// Payloads with nothing but `_meta` to look at.
macro_rules! only_meta {
    ($($type:ty),* $(,)?) => {$(
        impl Walk for $type {
            fn walk(&mut self, differences: &impl Differences) {
                differences.meta(&mut self.meta);
            }
        }

        versioned!($type);
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

versioned!(
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

impl Walk for InitializeParams {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        self.capabilities.walk(differences);
        self.client_info.walk(differences);
    }
}

impl Walk for InitializeResult {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        self.capabilities.walk(differences);
        self.server_info.walk(differences);
    }
}

impl Walk for DiscoverResult {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        self.capabilities.walk(differences);
    }
}

impl Walk for ClientCapabilities {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.client_capabilities(self);
    }
}

impl Walk for ServerCapabilities {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.server_capabilities(self);
    }
}

impl Walk for Implementation {
    fn walk(&mut self, differences: &impl Differences) {
        differences.implementation(self);
        differences.title(&mut self.title);
        differences.icons(&mut self.icons);
    }
}

impl Walk for ListToolsResult {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.tools, differences);
    }
}

impl Walk for Tool {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.tool(self);
        differences.title(&mut self.title);
        differences.icons(&mut self.icons);
        differences.nested_meta(&mut self.meta);
    }
}

impl Walk for CallToolParams {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.task(&mut self.task);
        differences.answers(&mut self.input_responses, &mut self.request_state);
    }
}

impl Walk for CallToolResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.call_result(self);
        differences.structured_content(&mut self.structured_content);
        walk_all(&mut self.content, differences);
    }
}

impl Walk for ListResourcesResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.resources, differences);
    }
}

impl Walk for skills::ReadDirectoryResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.resources, differences);
    }
}

impl Walk for skills::ListSkillsResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
    }
}

impl Walk for skills::GetSkillResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
    }
}

impl Walk for ListResourceTemplatesResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.resource_templates, differences);
    }
}

impl Walk for Resource {
    fn walk(&mut self, differences: &impl Differences) {
        differences.title(&mut self.title);
        differences.icons(&mut self.icons);
        annotations(&mut self.annotations, differences);
        differences.nested_meta(&mut self.meta);
    }
}

impl Walk for ResourceTemplate {
    fn walk(&mut self, differences: &impl Differences) {
        differences.title(&mut self.title);
        differences.icons(&mut self.icons);
        annotations(&mut self.annotations, differences);
        differences.nested_meta(&mut self.meta);
    }
}

impl Walk for ReadResourceParams {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.answers(&mut self.input_responses, &mut self.request_state);
    }
}

impl Walk for ReadResourceResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        for contents in &mut self.contents {
            differences.nested_meta(contents.meta_mut());
        }
    }
}

impl Walk for ListPromptsResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.caching(&mut self.ttl_ms, &mut self.cache_scope);
        walk_all(&mut self.prompts, differences);
    }
}

impl Walk for Prompt {
    fn walk(&mut self, differences: &impl Differences) {
        differences.title(&mut self.title);
        differences.icons(&mut self.icons);
        differences.nested_meta(&mut self.meta);
        for argument in self.arguments.iter_mut().flatten() {
            differences.title(&mut argument.title);
        }
    }
}

impl Walk for GetPromptParams {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.answers(&mut self.input_responses, &mut self.request_state);
    }
}

impl Walk for GetPromptResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        for message in &mut self.messages {
            message.content.walk(differences);
        }
    }
}

impl Walk for CompleteParams {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.complete(self);
        if let CompletionReference::Prompt { title, .. } = &mut self.reference {
            differences.title(title);
        }
    }
}

impl Walk for ProgressParams {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.progress(self);
    }
}

impl Walk for CreateMessageParams {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.task(&mut self.task);
        differences.create_message(self);
        for message in &mut self.messages {
            differences.nested_meta(&mut message.meta);
            walk_all(&mut message.content, differences);
        }
        for tool in self.tools.iter_mut().flatten() {
            tool.walk(differences);
        }
    }
}

impl Walk for CreateMessageResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.created_message(self);
        walk_all(&mut self.content, differences);
    }
}

impl Walk for ElicitParams {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        let (meta, task) = match self {
            Self::Form(form) => (&mut form.meta, &mut form.task),
            Self::Url(url) => (&mut url.meta, &mut url.task),
        };
        differences.meta(meta);
        differences.task(task);
        differences.elicit(self);
    }
}

impl Walk for ElicitResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        differences.elicited(self);
    }
}

impl Walk for ListRootsResult {
    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        for root in &mut self.roots {
            differences.nested_meta(&mut root.meta);
        }
    }
}

impl Walk for InputRequiredResult {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        for request in self.input_requests.values_mut() {
            request.walk(differences);
        }
    }
}

impl Walk for InputRequest {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        match self {
            Self::CreateMessage(params) => params.walk(differences),
            Self::ListRoots(params) => params.walk(differences),
            Self::Elicit(params) => params.walk(differences),
            Self::Unknown { .. } => {}
        }
    }
}

impl Walk for tasks::GetTaskResult {
    const RETIRED: bool = true;

    fn walk(&mut self, differences: &impl Differences) {
        differences.meta(&mut self.meta);
        for request in self
            .input_requests
            .iter_mut()
            .flat_map(|map| map.values_mut())
        {
            request.walk(differences);
        }
    }
}

impl Walk for UrlElicitationRequiredData {
    fn walk(&mut self, differences: &impl Differences) {
        for url in &mut self.elicitations {
            let mut params = ElicitParams::Url(url.clone());
            params.walk(differences);
            if let ElicitParams::Url(lowered) = params {
                *url = lowered;
            }
        }
    }
}

impl Walk for ContentBlock {
    fn walk(&mut self, differences: &impl Differences) {
        // First the whole: what replaces it is looked at, not what it was.
        differences.block(self);
        let (hints, meta) = match self {
            Self::Text(text) => (&mut text.annotations, &mut text.meta),
            Self::Image(image) => (&mut image.annotations, &mut image.meta),
            Self::Audio(audio) => (&mut audio.annotations, &mut audio.meta),
            Self::ResourceLink(resource) => return resource.walk(differences),
            Self::Resource(embedded) => {
                differences.nested_meta(embedded.resource.meta_mut());
                (&mut embedded.annotations, &mut embedded.meta)
            }
            Self::ToolUse(call) => return differences.nested_meta(&mut call.meta),
            Self::ToolResult(result) => {
                differences.structured_content(&mut result.structured_content);
                walk_all(&mut result.content, differences);
                return differences.nested_meta(&mut result.meta);
            }
            Self::Unknown(_) => return,
        };
        annotations(hints, differences);
        differences.nested_meta(meta);
    }
}

fn walk_all(things: &mut [impl Walk], differences: &impl Differences) {
    for thing in things {
        thing.walk(differences);
    }
}

fn annotations(annotations: &mut Option<Annotations>, differences: &impl Differences) {
    if let Some(annotations) = annotations {
        differences.annotations(annotations);
    }
}
