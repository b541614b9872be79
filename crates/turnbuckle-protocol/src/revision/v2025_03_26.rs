//! 2025-03-26: without titles, structured output, resource links and elicitation.
//!
//! `_meta` exists on parameters and results only, and completion lacks a context.

use serde_json::Value;

use super::adapter::RevisionAdapter;
use crate::{
    meta::Meta,
    types::{
        Annotations, CallToolResult, ClientCapabilities, CompleteParams, ContentBlock, Resource,
        TextContent, Tool,
    },
};

/// Removes the additions of 2025-06-18.
pub(super) struct DowngradeTo2025_03_26;

impl RevisionAdapter for DowngradeTo2025_03_26 {
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
        // In this revision the title is one of the annotations.
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

/// Upgrades payloads of this revision.
pub(super) struct UpgradeFrom2025_03_26;

impl RevisionAdapter for UpgradeFrom2025_03_26 {
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        capabilities.elicitation = None;
    }
}

/// Replaces a resource link by text, so that a model can still request the URI.
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
