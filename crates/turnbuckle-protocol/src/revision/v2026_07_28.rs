//! 2026-07-28: stateless requests.
//!
//! This is the newest form, so nothing is added or translated. Retired members are neither sent to nor accepted from
//! peers of this revision.

use super::adapter::RevisionAdapter;
use crate::types::{
    ClientCapabilities, ElicitParams, ServerCapabilities, Tool, tasks::legacy::TaskMetadata,
};

/// Removes members that only the legacy era has.
pub(super) struct DowngradeTo2026_07_28;

impl RevisionAdapter for DowngradeTo2026_07_28 {
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

/// Received retired members are removed in the same way.
pub(super) use DowngradeTo2026_07_28 as UpgradeFrom2026_07_28;
