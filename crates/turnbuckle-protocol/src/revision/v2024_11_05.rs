//! 2024-11-05: without audio, tool annotations and progress messages.
//!
//! Completion is not declared: a server may support it or not.

use super::adapter::RevisionAdapter;
use crate::types::{
    AudioContent, ContentBlock, JsonObject, ProgressParams, ServerCapabilities, TextContent, Tool,
};

/// Removes the additions of 2025-03-26.
pub(super) struct DowngradeTo2024_11_05;

impl RevisionAdapter for DowngradeTo2024_11_05 {
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

/// Upgrades payloads of this revision.
pub(super) struct UpgradeFrom2024_11_05;

impl RevisionAdapter for UpgradeFrom2024_11_05 {
    // The capability does not exist here, so completion has to be tried.
    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        capabilities.completions.get_or_insert_with(JsonObject::new);
    }
}

/// Replaces audio by a text, because audio cannot be sent and its bytes as text would not help.
fn audio_text(audio: &mut AudioContent) -> TextContent {
    TextContent {
        annotations: audio.annotations.take(),
        ..TextContent::new(format!("[{} left out]", audio.mime_type))
    }
}
