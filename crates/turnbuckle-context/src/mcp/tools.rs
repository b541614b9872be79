//! Tools, with typed arguments and results that have structured content and text.
//!
//! Names and arguments are compatible with contextd. Tool definitions are part of every conversation, so descriptions are short
//! and do not repeat the schema.

mod checkpoints;
mod collections;
pub(crate) mod debug;
mod memories;
mod remediations;
mod repository;
mod skills;
mod status;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_server::{Context, Tool};

use super::{
    error_messages,
    tool_response::{ToText, ToolResponse},
};
use crate::{ContextError, app_state::AppState};

/// Returns all tools of the context server, except the debug tools.
pub(crate) fn all(state: &AppState) -> Vec<Tool> {
    [
        checkpoints::tools(state),
        remediations::tools(state),
        skills::tools(state),
        repository::tools(state),
        collections::tools(state),
        status::tools(state),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Creates a tool from a function.
fn tool<A, T, F, Fut>(state: &AppState, name: &'static str, title: &'static str, work: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: ToText + Serialize + JsonSchema + Send + 'static,
    F: Fn(AppState, A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, ContextError>> + Send + 'static,
{
    let state = state.clone();
    let run = move |args: A, cx: Context| {
        let work = work(state.clone(), args, cx);
        async move {
            work.await
                .map(ToolResponse)
                .map_err(error_messages::tool_error)
        }
    };
    // The tools only use files of this machine.
    Tool::new(name, run).title(title).open_world(false)
}
