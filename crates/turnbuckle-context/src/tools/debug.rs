//! The debug tools: what this server was just asked, and how long it took.

mod answers;
mod arguments;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use turnbuckle_server::{Context, Tool};

use crate::answer::{Answer, Readable};
use crate::trace::{Glob, Log, Node, Session, Shown, Status, Trace, Wanted};
use crate::{ContextError, failure};
use answers::{Cleared, Closed, Disabled, Enabled, Found, Sessions, Tree};
use arguments::{Close, Create, Enable, Format, Nothing, Query, TreeArguments};

/// The nine debug tools. Each caller sees its own calls.
pub fn all(trace: &Trace) -> Vec<Tool> {
    vec![
        tool(
            trace,
            "debug_create_session",
            "Open a debug session",
            create,
        )
        .description("Open a debug session: calls made until it is closed are grouped below it")
        .destructive(false),
        tool(trace, "debug_list_sessions", "List debug sessions", list)
            .description("List open debug sessions")
            .read_only()
            .idempotent(),
        tool(trace, "debug_close_session", "Close a debug session", close)
            .description("Close a debug session")
            .destructive(true)
            .idempotent(),
        tool(trace, "debug_log_enable", "Enable the call log", enable)
            .description("Note calls to this server whose name matches a pattern; on by default")
            .destructive(false)
            .idempotent(),
        tool(trace, "debug_log_disable", "Disable the call log", disable)
            .description("Stop noting calls")
            .destructive(false)
            .idempotent(),
        tool(trace, "debug_log_clear", "Clear the call log", clear)
            .description("Forget the noted calls")
            .destructive(true)
            .idempotent(),
        tool(
            trace,
            "debug_log_status",
            "Show the state of the call log",
            status,
        )
        .description("Say whether calls are noted, and how many are")
        .read_only()
        .idempotent(),
        tool(trace, "debug_log_query", "Query the call log", query)
            .description("Show your last calls to this server, with durations")
            .read_only()
            .idempotent(),
        tool(trace, "debug_log_tree", "Show the call log as a tree", tree)
            .description("Show your last calls as a tree")
            .read_only()
            .idempotent(),
    ]
}

fn create(log: &mut Log, arguments: &Create) -> Result<Session, ContextError> {
    log.open(&arguments.program, arguments.target_type.as_str())
}

fn list(log: &mut Log, _: &Nothing) -> Result<Sessions, ContextError> {
    let sessions = log.sessions();
    Ok(Sessions { sessions })
}

fn close(log: &mut Log, arguments: &Close) -> Result<Closed, ContextError> {
    log.close(&arguments.session_id)?;
    Ok(Closed {
        closed: arguments.session_id.clone(),
        status: "ok",
    })
}

fn enable(log: &mut Log, arguments: &Enable) -> Result<Enabled, ContextError> {
    let pattern = Glob::new(&arguments.pattern)?;
    let filter_pattern = pattern.to_string();
    log.enable(pattern);
    Ok(Enabled {
        status: "enabled",
        filter_pattern,
    })
}

fn disable(log: &mut Log, _: &Nothing) -> Result<Disabled, ContextError> {
    log.disable();
    let status = "disabled";
    Ok(Disabled { status })
}

fn clear(log: &mut Log, _: &Nothing) -> Result<Cleared, ContextError> {
    log.clear();
    Ok(Cleared {
        status: "cleared",
        entry_count: log.len(),
    })
}

fn status(log: &mut Log, _: &Nothing) -> Result<Status, ContextError> {
    Ok(Status::of(log))
}

fn query(log: &mut Log, arguments: &Query) -> Result<Found, ContextError> {
    let function = arguments.function_pattern.as_deref();
    let entries = log.query(&Wanted {
        since: arguments.since_id,
        kind: arguments.entry_type,
        function: function.map(Glob::new).transpose()?,
        most: arguments.max_results.into(),
    });
    let count = entries.len();
    Ok(Found { count, entries })
}

fn tree(log: &mut Log, arguments: &TreeArguments) -> Result<Tree, ContextError> {
    let shown = Shown {
        max_depth: arguments.max_depth,
        since: arguments.since_id.unwrap_or(0),
        expanded: arguments.expanded_groups.clone(),
    };
    let forest = Node::forest(log.entries(), &shown);
    let text = Node::render(&forest);
    Ok(Tree {
        format: arguments.format.as_str(),
        tree: match arguments.format {
            Format::Text => json!(text),
            Format::Json => json!(forest),
        },
        text,
    })
}

/// Makes a tool of a function on the caller's notes.
fn tool<A, T>(
    trace: &Trace,
    name: &str,
    title: &str,
    work: fn(&mut Log, &A) -> Result<T, ContextError>,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Readable + Serialize + JsonSchema + Send + 'static,
{
    let trace = trace.clone();
    Tool::new(name, move |arguments: A, cx: Context| {
        let done = trace.with(cx.principal(), |log| work(log, &arguments));
        let done = done.and_then(|done| done).map(Answer);
        std::future::ready(done.map_err(failure::for_model))
    })
    .title(title)
    .open_world(false)
}
