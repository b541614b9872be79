//! Selects the tools that may be called, and their arguments.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::{codec::headers, revision::Revision};

use super::{inventory::ListedItems, sample_arguments};
use crate::{
    engine::{check_context::CheckContext, outcome::NotPassed, transcript::Transcript},
    options::CheckOptions,
    session::{ProbeResponse, Session, request_builder::RequestBuilder},
};

/// The maximum number of tool names in a sentence.
const MAX_NAMES: usize = 10;

/// A tool call that may be made.
#[derive(Clone, Debug)]
pub(crate) struct SafeCall {
    /// The listed tool.
    pub(crate) tool: Value,
    /// Its name.
    pub(crate) name: String,
    /// Valid arguments.
    pub(crate) arguments: Value,
    /// The tool only runs as a task.
    pub(crate) only_as_task: bool,
    /// The tool may also be called with other arguments: it is read-only, or the user allows
    /// writes.
    pub(crate) allows_other_arguments: bool,
}

impl SafeCall {
    /// Returns the parameters of `tools/call`.
    pub(crate) fn params(&self) -> Value {
        json!({ "name": self.name, "arguments": self.arguments })
    }

    /// Returns the `Mcp-Param-*` headers, for revisions and transports that have them.
    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        let param_headers = headers::param_headers(&self.tool["inputSchema"]).unwrap_or_default();
        let repeat = |param_header: headers::ParamHeader| {
            let value = param_header
                .path
                .iter()
                .try_fold(&self.arguments, |at, name| at.get(name))?;
            let text = value.to_string();
            let value = headers::encode_argument(&text).ok().flatten()?;
            Some((
                format!("mcp-param-{}", param_header.header),
                value.into_owned(),
            ))
        };
        param_headers.into_iter().filter_map(repeat).collect()
    }

    /// Makes the call and waits for the response.
    pub(crate) async fn send(&self, session: &Session) -> Result<ProbeResponse, NotPassed> {
        let pending = session
            .send_request_with_headers("tools/call", self.params(), self.headers())
            .await?;
        session.wait_response(pending).await
    }
}

/// Selects the calls that may be made; also returns sentences about the skipped tools.
pub(super) async fn select_safe(
    ctx: &CheckContext,
    tools: &ListedItems,
) -> (Vec<SafeCall>, Vec<String>) {
    let options = &ctx.options;
    let read_only = if options.allow_writes {
        HashSet::new()
    } else {
        read_only_tools(ctx, tools).await
    };
    let mut calls = Vec::new();
    let (mut not_read_only, mut skipped) = (Vec::new(), Vec::new());
    for tool in tools {
        let Some(name) = tool["name"].as_str() else {
            continue;
        };
        let allows_other_arguments = options.allow_writes || read_only.contains(name);
        let call = |arguments| call(tool, name, arguments, allows_other_arguments);
        let mut given = user_arguments(options, name).peekable();
        if given.peek().is_some() {
            calls.extend(given.map(|arguments| call(arguments.clone())));
        } else if !allows_other_arguments {
            not_read_only.push(name);
        } else {
            match sample_arguments::generate(&tool["inputSchema"]) {
                Ok(arguments) => calls.push(call(arguments)),
                Err(why) => skipped.push(format!(
                    "skipped the tool `{name}`: no arguments could be generated ({why}); use `--call {name} ARGUMENTS`"
                )),
            }
        }
    }
    if !not_read_only.is_empty() {
        skipped.insert(0, format!(
            "{} skipped: not annotated `readOnlyHint`; use `--call TOOL ARGUMENTS` or `--allow-writes` to allow calls",
            list_names(&not_read_only)
        ));
    }
    let unknown = options.calls.iter().map(|(name, _)| name.as_str());
    let unknown = unknown.filter(|name| !tools.iter().any(|tool| tool["name"] == **name));
    skipped.extend(unknown.map(|name| format!("unknown tool `{name}` in `--call`")));
    (calls, skipped)
}

fn call(tool: &Value, name: &str, arguments: Value, allows_other_arguments: bool) -> SafeCall {
    SafeCall {
        allows_other_arguments,
        tool: tool.clone(),
        name: name.to_owned(),
        arguments,
        only_as_task: tool["execution"]["taskSupport"] == "required",
    }
}

fn user_arguments<'a>(options: &'a CheckOptions, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let calls = options.calls.iter();
    calls.filter_map(move |(tool, arguments)| (tool == name).then_some(arguments))
}

/// Returns the names of the tools that are annotated as read-only.
///
/// The first revisions do not have the annotation, so the tools are listed again in one that has it.
async fn read_only_tools(ctx: &CheckContext, tools: &ListedItems) -> HashSet<String> {
    let annotated = annotated_read_only(tools);
    if ctx.revision >= Revision::V2025_03_26 || annotated.len() == tools.len() {
        return annotated;
    }
    let request_builder = RequestBuilder::new(Revision::V2025_11_25);
    // A separate transcript: these messages belong to another revision.
    let transcript = Transcript::default();
    let opened = Session::open(&ctx.target, &transcript, request_builder, &ctx.pace).await;
    let Ok(mut session) = opened else {
        return annotated;
    };
    if session.initialize_session().await.is_err() {
        return annotated;
    }
    let newer = annotated_read_only(&ListedItems::read(&session, "tools", "tools/list").await);
    annotated.union(&newer).cloned().collect()
}

fn annotated_read_only(tools: &ListedItems) -> HashSet<String> {
    let read_only = tools
        .iter()
        .filter(|tool| tool["annotations"]["readOnlyHint"] == true);
    let names = read_only.filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

fn list_names(names: &[&str]) -> String {
    let quoted_names: Vec<_> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = match names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match names.len() {
        1 => format!("the tool {} was", quoted_names[0]),
        count => format!("{count} tools ({}{more}) were", quoted_names.join(", ")),
    }
}
