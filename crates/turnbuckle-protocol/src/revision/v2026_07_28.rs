//! 2026-07-28: stateless requests.
//!
//! This is the newest form, so nothing is added or translated. The members of sessions are neither sent to nor accepted
//! from peers of this and later revisions.

use super::adapter::RevisionAdapter;
use crate::types::{
    ClientCapabilities, ElicitParams, ServerCapabilities, Tool, tasks::legacy::TaskMetadata,
};

/// Removes members that only the legacy era has, from sent and from received payloads.
pub(super) struct WithoutSessionMembers;

impl RevisionAdapter for WithoutSessionMembers {
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
