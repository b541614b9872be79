//! 2026-07-28: every request stands on its own.
//!
//! The newest shape is this one, so there is nothing to add or to translate; but what it retired must neither
//! be sent to its speakers nor believed when one of them sends it.

use super::walk::Differences;
use crate::types::{
    ClientCapabilities, ElicitParams, ServerCapabilities, Tool, tasks::legacy::TaskMetadata,
};

/// Takes away what only revisions with a handshake know.
pub(super) struct Lower;

impl Differences for Lower {
    fn client_capabilities(&self, capabilities: &mut ClientCapabilities) {
        capabilities.tasks = None;
        if let Some(roots) = &mut capabilities.roots {
            roots.list_changed = None;
        }
    }

    fn server_capabilities(&self, capabilities: &mut ServerCapabilities) {
        capabilities.tasks = None;
    }

    fn task(&self, task: &mut Option<TaskMetadata>) {
        *task = None;
    }

    fn tool(&self, tool: &mut Tool) {
        tool.execution = None;
    }

    fn elicit(&self, params: &mut ElicitParams) {
        if let ElicitParams::Url(url) = params {
            url.elicitation_id = None;
        }
    }
}

/// A retired member means as little when it comes in.
pub(super) use Lower as Raise;
