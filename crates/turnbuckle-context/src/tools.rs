//! The tools: typed arguments in, data and readable text out.
//!
//! Names and arguments are those that agents know from contextd. Every definition is read in every conversation, so
//! descriptions are short, and what a schema says is not said again.

mod checkpoints;
mod collections;
pub mod debug;
mod memories;
mod remediations;
mod repository;
mod skills;
mod status;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_server::{Context, Tool};

use crate::answer::{Answer, Readable};
use crate::desk::Desk;
use crate::{ContextError, failure};

/// All tools of the context server.
pub(crate) fn all(desk: &Desk) -> Vec<Tool> {
    [
        checkpoints::tools(desk),
        remediations::tools(desk),
        skills::tools(desk),
        repository::tools(desk),
        collections::tools(desk),
        status::tools(desk),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Makes a tool of a function that works at the desk.
fn tool<A, T, F, Fut>(desk: &Desk, name: &'static str, title: &'static str, work: F) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Readable + Serialize + JsonSchema + Send + 'static,
    F: Fn(Desk, A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, ContextError>> + Send + 'static,
{
    let desk = desk.clone();
    let run = move |args: A, cx: Context| {
        let work = work(desk.clone(), args, cx);
        async move { work.await.map(Answer).map_err(failure::for_model) }
    };
    // Nothing here reaches further than the files of this machine.
    Tool::new(name, run).title(title).open_world(false)
}
