//! The tools: typed arguments in, data and readable text out.
//!
//! Names and arguments are those that agents know from contextd. Every definition is read in every conversation, so
//! descriptions are short, and what a schema says is not said again.

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

/// All tools of the context server.
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

/// Makes a tool of a function that works at the desk.
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
    // Nothing here reaches further than the files of this machine.
    Tool::new(name, run).title(title).open_world(false)
}
