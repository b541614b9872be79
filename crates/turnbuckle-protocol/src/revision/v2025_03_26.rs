//! 2025-03-26: no titles, no structured output, no resource links, no elicitation.
//!
//! `_meta` is on parameters and results only, and completion has no context.

use serde_json::Value;

use super::walk::Differences;
use crate::{
    meta::Meta,
    types::{
        Annotations, CallToolResult, ClientCapabilities, CompleteParams, ContentBlock, Resource,
        TextContent, Tool,
    },
};

/// Takes away what came with 2025-06-18.
pub(super) struct Lower;

impl Differences for Lower {
    fn nested_meta(&self, meta: &mut Meta) {
        meta.clear();
    }

    fn title(&self, title: &mut Option<String>) {
        *title = None;
    }

    fn annotations(&self, annotations: &mut Annotations) {
        annotations.last_modified = None;
    }

    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        capabilities.elicitation = None;
    }

    fn tool(&self, tool: &mut Tool) {
        tool.output_schema = None;
        // The title has a place among the annotations here.
        if let Some(title) = tool.title.take() {
            let annotations = tool.annotations.get_or_insert_default();
            annotations.title.get_or_insert(title);
        }
    }

    fn call_result(&self, result: &mut CallToolResult) {
        if let Some(value) = &result.structured_content
            && result.content.is_empty()
        {
            result.content.push(ContentBlock::text(value.to_string()));
        }
    }

    fn structured_content(&self, content: &mut Option<Value>) {
        *content = None;
    }

    fn block(&self, block: &mut ContentBlock) {
        if let ContentBlock::ResourceLink(resource) = block {
            *block = ContentBlock::Text(link_text(resource));
        }
    }

    fn complete(&self, params: &mut CompleteParams) {
        params.context = None;
    }
}

/// Reads what a peer of this date writes.
pub(super) struct Raise;

impl Differences for Raise {
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        capabilities.elicitation = None;
    }
}

/// A link in words: a model can still ask for the address.
fn link_text(resource: &mut Resource) -> TextContent {
    let name = resource.title.as_ref().unwrap_or(&resource.name);
    let mut text = format!("{name}: {}", resource.uri);
    if let Some(description) = &resource.description {
        text.push('\n');
        text.push_str(description);
    }
    TextContent {
        annotations: resource.annotations.take(),
        ..TextContent::new(text)
    }
}
