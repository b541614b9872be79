//! 2025-06-18: without icons, tasks, URL elicitation and tools in sampling.
//!
//! A sampling message has one block, a form has single-select fields with `enumNames`, and only boolean fields have a
//! default.

use serde_json::Value;

use super::adapter::RevisionAdapter;
use crate::types::{
    ClientCapabilities, ContentBlock, CreateMessageParams, CreateMessageResult, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitationCapability, Icon, Implementation, JsonObject,
    SamplingCapability, SamplingMessage, ServerCapabilities, Tool, ToolResultContent,
    elicitation::{ElicitSchema, PrimitiveSchema, SingleSelectSchema},
    tasks::legacy::TaskMetadata,
};

/// Removes the additions of 2025-11-25.
pub(super) struct DowngradeTo2025_06_18;

impl RevisionAdapter for DowngradeTo2025_06_18 {
    fn icons(&self, icons: &mut Vec<Icon>) {
        icons.clear();
    }

    fn implementation(&self, implementation: &mut Implementation) {
        implementation.description = None;
        implementation.website_url = None;
    }

    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        drop_newer_client_capabilities(capabilities);
        // This revision has form elicitation only, so a client with URL elicitation alone supports none.
        let can_elicit = capabilities.can_elicit_form();
        capabilities.elicitation = can_elicit.then(ElicitationCapability::default);
    }

    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        capabilities.tasks = None;
        capabilities.extensions = None;
    }

    fn task(&self, task: &mut Option<TaskMetadata>) {
        *task = None;
    }

    fn tool(&self, tool: &mut Tool) {
        tool.execution = None;
    }

    fn create_message(&self, params: &mut CreateMessageParams) {
        params.tools = None;
        params.tool_choice = None;
        params.messages = params.messages.drain(..).flat_map(one_block_each).collect();
    }

    fn created_message(&self, result: &mut CreateMessageResult) {
        let mut blocks: Vec<_> = result
            .content
            .drain(..)
            .flat_map(to_supported_blocks)
            .collect();
        if blocks.len() != 1 {
            blocks = vec![join_text(blocks)];
        }
        result.content = blocks;
    }

    fn elicit(&self, params: &mut ElicitParams) {
        match params {
            ElicitParams::Form(form) => simplify(&mut form.requested_schema),
            // Reached only if the caller ignores the capabilities of the client: show the URL to the user.
            ElicitParams::Url(url) => {
                let message = format!("{}\n{}", url.message, url.url);
                let form = ElicitFormParams::new(message, ElicitSchema::new());
                *params = form.meta(std::mem::take(&mut url.meta)).into();
            }
        }
    }

    fn elicited(&self, result: &mut ElicitResult) {
        if let Some(content) = &mut result.content {
            content.retain(|_, value| !value.is_array());
        }
    }
}

/// Upgrades payloads of this revision.
pub(super) struct UpgradeFrom2025_06_18;

impl RevisionAdapter for UpgradeFrom2025_06_18 {
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        drop_newer_client_capabilities(capabilities);
        if let Some(elicitation) = &mut capabilities.elicitation {
            *elicitation = ElicitationCapability::default().form(JsonObject::new());
        }
    }

    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        capabilities.tasks = None;
        capabilities.extensions = None;
    }

    fn elicit(&self, params: &mut ElicitParams) {
        if let ElicitParams::Form(form) = params {
            for (_, field) in &mut form.requested_schema.properties {
                if let PrimitiveSchema::SingleSelect(choice) = field {
                    choice.set_titles();
                }
            }
        }
    }
}

/// Removes capabilities that a client of this revision cannot declare, including elicitation without forms.
fn drop_newer_client_capabilities(capabilities: &mut ClientCapabilities) {
    if !capabilities.can_elicit_form() {
        capabilities.elicitation = None;
    }
    if let Some(sampling) = &mut capabilities.sampling {
        *sampling = SamplingCapability::default();
    }
    capabilities.tasks = None;
    capabilities.extensions = None;
}

/// Splits a message into one message per block.
fn one_block_each(message: SamplingMessage) -> impl Iterator<Item = SamplingMessage> {
    let role = message.role;
    let blocks = message.content.into_iter().flat_map(to_supported_blocks);
    blocks.map(move |block| SamplingMessage::new(role, block))
}

/// Converts blocks to those that sampling supports here: tool calls and results become text.
fn to_supported_blocks(block: ContentBlock) -> Vec<ContentBlock> {
    match block {
        ContentBlock::ToolUse(call) => {
            let input = Value::Object(call.input);
            vec![ContentBlock::text(format!("{}({input})", call.name))]
        }
        ContentBlock::ToolResult(result) => tool_result_blocks(result),
        block => vec![block],
    }
}

fn tool_result_blocks(result: ToolResultContent) -> Vec<ContentBlock> {
    let blocks = result.content.into_iter().map(|block| match block {
        ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Audio(_) => block,
        other => ContentBlock::text(serde_json::to_string(&other).unwrap_or_default()),
    });
    let blocks: Vec<_> = blocks.collect();
    match result.structured_content {
        Some(value) if blocks.is_empty() => vec![ContentBlock::text(value.to_string())],
        _ => blocks,
    }
}

/// Joins several blocks into one: their text if there is any, else the first block.
fn join_text(blocks: Vec<ContentBlock>) -> ContentBlock {
    let text: Vec<_> = blocks.iter().filter_map(ContentBlock::as_text).collect();
    if text.is_empty() && !blocks.is_empty() {
        blocks
            .into_iter()
            .next()
            .expect("checked to be non-empty above")
    } else {
        ContentBlock::text(text.join("\n"))
    }
}

fn simplify(schema: &mut ElicitSchema) {
    schema.dialect = None;
    for (_, field) in &mut schema.properties {
        match field {
            PrimitiveSchema::String(text) => text.default = None,
            PrimitiveSchema::Number(number) => number.default = None,
            PrimitiveSchema::Boolean(_) => {}
            PrimitiveSchema::SingleSelect(choice) => {
                choice.default = None;
                choice.set_enum_names();
            }
            // A single choice is the closest field; `ElicitSchema::wrap_single_choices` converts the response to a
            // list.
            PrimitiveSchema::MultiSelect(choices) => {
                let mut choice = SingleSelectSchema::new(choices.options().to_vec());
                choice.title = choices.title.take();
                choice.description = choices.description.take();
                choice.set_enum_names();
                *field = choice.into();
            }
        }
    }
}
