//! 2025-06-18: no icons, no tasks, no URL elicitation, no tools in sampling.
//!
//! A sampling message has one block, a form offers single choices with `enumNames`, and only a yes-or-no field
//! has a default.

use serde_json::Value;

use super::walk::Differences;
use crate::types::{
    ClientCapabilities, ContentBlock, CreateMessageParams, CreateMessageResult, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitationCapability, Icon, Implementation, JsonObject,
    SamplingCapability, SamplingMessage, ServerCapabilities, Tool, ToolResultContent,
    elicitation::{ElicitSchema, PrimitiveSchema, SingleSelectSchema},
    tasks::legacy::TaskMetadata,
};

/// Takes away what came with 2025-11-25.
pub(super) struct Lower;

impl Differences for Lower {
    fn icons(&self, icons: &mut Vec<Icon>) {
        icons.clear();
    }

    fn implementation(&self, implementation: &mut Implementation) {
        implementation.description = None;
        implementation.website_url = None;
    }

    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        known_client_capabilities(capabilities);
        // Forms are all that there is here: who only opens URLs cannot be asked at all.
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
        let mut blocks: Vec<_> = result.content.drain(..).flat_map(plain).collect();
        if blocks.len() != 1 {
            blocks = vec![joined(blocks)];
        }
        result.content = blocks;
    }

    fn elicit(&self, params: &mut ElicitParams) {
        match params {
            ElicitParams::Form(form) => simplify(&mut form.requested_schema),
            // Reached only by who asks without looking at the capabilities of the client: the user at least
            // sees where to go.
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

/// Reads what a peer of this date writes.
pub(super) struct Raise;

impl Differences for Raise {
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        known_client_capabilities(capabilities);
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
                    choice.spell_titles();
                }
            }
        }
    }
}

/// What a client of this date can declare. One that opens URLs but shows no forms cannot be asked here.
fn known_client_capabilities(capabilities: &mut ClientCapabilities) {
    if !capabilities.can_elicit_form() {
        capabilities.elicitation = None;
    }
    if let Some(sampling) = &mut capabilities.sampling {
        *sampling = SamplingCapability::default();
    }
    capabilities.tasks = None;
    capabilities.extensions = None;
}

/// A message for every block, as a message has one here.
fn one_block_each(message: SamplingMessage) -> impl Iterator<Item = SamplingMessage> {
    let role = message.role;
    let blocks = message.content.into_iter().flat_map(plain);
    blocks.map(move |block| SamplingMessage::new(role, block))
}

/// Blocks that sampling knows here: a tool call and its result become what a model can read of them.
fn plain(block: ContentBlock) -> Vec<ContentBlock> {
    match block {
        ContentBlock::ToolUse(call) => {
            let input = Value::Object(call.input);
            vec![ContentBlock::text(format!("{}({input})", call.name))]
        }
        ContentBlock::ToolResult(result) => readable(result),
        block => vec![block],
    }
}

fn readable(result: ToolResultContent) -> Vec<ContentBlock> {
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

/// One block in place of several: their text if there is any, else the first.
fn joined(blocks: Vec<ContentBlock>) -> ContentBlock {
    let text: Vec<_> = blocks.iter().filter_map(ContentBlock::as_text).collect();
    if text.is_empty() && !blocks.is_empty() {
        blocks.into_iter().next().expect("it is not empty")
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
                choice.spell_names();
            }
            // One of several is the nearest thing; `ElicitSchema::widen` makes a list of its answer.
            PrimitiveSchema::MultiSelect(choices) => {
                let mut choice = SingleSelectSchema::new(choices.options().to_vec());
                choice.title = choices.title.take();
                choice.description = choices.description.take();
                choice.spell_names();
                *field = choice.into();
            }
        }
    }
}
