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

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    pin::Pin,
};

use schemars::JsonSchema;
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::Value;
use turnbuckle_protocol::{RpcError, types::Tool as ToolDefinition};
use turnbuckle_server::{
    Context, Tool,
    http::UrlQuery,
    middleware::{Middleware, Next, Operation, OperationResponse},
};
use turnbuckle_text::suggestions::most_similar;

use super::{
    display::one_line,
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
        memories::tools(state),
        repository::tools(state),
        collections::tools(state),
        status::tools(state),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The tools of [`ToolSet::Core`](crate::ToolSet::Core): memory and search.
///
/// `index_repository` is one of them: a search in a large repository requires it.
const CORE: [&str; 10] = [
    "checkpoint_save",
    "checkpoint_search",
    "checkpoint_list",
    "remediation_save",
    "remediation_search",
    "skill_save",
    "skill_search",
    "memory_forget",
    "index_repository",
    "repository_search",
];

/// Shortens the definition of a core tool; returns `false` for other tools.
///
/// The schema of the result is left out: it is as long as the rest, and the text of a result explains itself.
pub(crate) fn core_definition(tool: &mut ToolDefinition) -> bool {
    tool.output_schema = None;
    CORE.contains(&&*tool.name)
}

/// Rejects `tools/list` for a set of tools that does not exist.
pub(crate) async fn check_requested_set(operation: Operation, next: Next) -> OperationResponse {
    let query = operation
        .get::<UrlQuery>()
        .filter(|_| operation.method() == "tools/list");
    match query.and_then(|query| query.parameter("tools")) {
        None | Some("all" | "core") => next.run().await,
        Some(other) => {
            let other = one_line(other, MAX_SHOWN_NAME);
            RpcError::invalid_params(format!(
                "unknown tool set `{other}` in the URL: expected `?tools=core` or `?tools=all`"
            ))
            .into()
        }
    }
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

/// Arguments that are not in a schema and still accepted, because callers of contextd use them.
const ALIASES: [(&str, &str); 1] = [("index_repository", "path")];

/// Refuses calls with arguments that the schema of the tool does not have.
///
/// An agent that mistypes an optional argument would otherwise get a result for another question. The schemas do not
/// say `additionalProperties: false`, which would be sent for every tool in every conversation.
pub(crate) struct ArgumentCheck {
    /// The arguments of each tool.
    names: HashMap<String, Vec<String>>,
}

impl ArgumentCheck {
    /// Creates the check for these tools.
    pub(crate) fn new(tools: &[Tool]) -> Self {
        let names = |tool: &Tool| {
            let properties = tool.definition().input_schema.get("properties");
            let members = properties.and_then(Value::as_object).into_iter().flatten();
            members.map(|(name, _)| name.clone()).collect()
        };
        Self {
            names: tools
                .iter()
                .map(|tool| (tool.name().to_owned(), names(tool)))
                .collect(),
        }
    }

    /// Returns the error message for the first unknown argument.
    fn problem(&self, operation: &Operation) -> Option<String> {
        let tool = operation.tool()?;
        let names = self.names.get(tool)?;
        // The tool reports arguments that are not an object.
        let arguments: BTreeMap<Cow<'_, str>, IgnoredAny> =
            serde_json::from_str(operation.arguments()?).ok()?;
        let is_unknown = |name: &str| {
            !names.iter().any(|known| known == name) && !ALIASES.contains(&(tool, name))
        };
        let name = arguments.keys().find(|name| is_unknown(name))?;
        let shown = one_line(name, MAX_SHOWN_NAME);
        let list = names.join("`, `");
        Some(match &*most_similar(name, names.iter().cloned()) {
            _ if names.is_empty() => {
                format!("unknown argument `{shown}`: `{tool}` takes no arguments")
            }
            [nearest, ..] => format!(
                "unknown argument `{shown}`: did you mean `{nearest}`? `{tool}` has `{list}`"
            ),
            [] => format!("unknown argument `{shown}`: `{tool}` has `{list}`"),
        })
    }
}

/// Maximum number of characters of an unknown name in an error message.
const MAX_SHOWN_NAME: usize = 60;

impl Middleware for ArgumentCheck {
    fn handle<'a>(
        &'a self,
        operation: Operation,
        next: Next,
    ) -> Pin<Box<dyn Future<Output = OperationResponse> + Send + 'a>> {
        Box::pin(async move {
            match self.problem(&operation) {
                Some(problem) => operation.tool_error(problem),
                None => next.run().await,
            }
        })
    }
}
