//! 2024-11-05: no audio, no tool annotations, no words with progress.
//!
//! Completion is not declared: a server may have it or not.

use super::walk::Differences;
use crate::types::{
    AudioContent, ContentBlock, JsonObject, ProgressParams, ServerCapabilities, TextContent, Tool,
};

/// Takes away what came with 2025-03-26.
pub(super) struct Lower;

impl Differences for Lower {
    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        capabilities.completions = None;
    }

    fn tool(&self, tool: &mut Tool) {
        tool.annotations = None;
    }

    fn block(&self, block: &mut ContentBlock) {
        if let ContentBlock::Audio(audio) = block {
            *block = ContentBlock::Text(audio_text(audio));
        }
    }

    fn progress(&self, params: &mut ProgressParams) {
        params.message = None;
    }
}

/// Reads what a peer of this date writes.
pub(super) struct Raise;

impl Differences for Raise {
    // Its silence says nothing, so asking is the way to find out.
    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        capabilities.completions.get_or_insert_with(JsonObject::new);
    }
}

/// Sound cannot be sent here, and its bytes as text would help nobody.
fn audio_text(audio: &mut AudioContent) -> TextContent {
    TextContent {
        annotations: audio.annotations.take(),
        ..TextContent::new(format!("[{} left out]", audio.mime_type))
    }
}
