//! The debug tools: what this server was just asked, and how long it took.

mod answers;
mod arguments;

use answers::{
    LogCleared, LogDisabled, LogEnabled, LogEntries, LogTree, SessionClosed, SessionList,
};
use arguments::{
    CloseSessionArgs, CreateSessionArgs, EmptyArgs, EnableLogArgs, QueryLogArgs, TreeArgs,
    TreeFormat,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use turnbuckle_server::{Context, Tool};

use crate::{
    ContextError,
    answer::{ToText, ToolResponse},
    failure,
    trace::{
        CallLog, CallLogStatus, CallNode, DebugSession, LogQuery, NamePattern, OwnerLog,
        RenderOptions,
    },
};

/// The nine debug tools. Each caller sees its own calls.
pub fn all(call_log: &CallLog) -> Vec<Tool> {
    vec![
        tool(
            call_log,
            "debug_create_session",
            "Open a debug session",
            create,
        )
        .description("Open a debug session: calls made until it is closed are grouped below it")
        .destructive(false),
        tool(call_log, "debug_list_sessions", "List debug sessions", list)
            .description("List open debug sessions")
            .read_only()
            .idempotent(),
        tool(
            call_log,
            "debug_close_session",
            "Close a debug session",
            close,
        )
        .description("Close a debug session")
        .destructive(true)
        .idempotent(),
        tool(call_log, "debug_log_enable", "Enable the call log", enable)
            .description("Note calls to this server whose name matches a pattern; on by default")
            .destructive(false)
            .idempotent(),
        tool(
            call_log,
            "debug_log_disable",
            "Disable the call log",
            disable,
        )
        .description("Stop noting calls")
        .destructive(false)
        .idempotent(),
        tool(call_log, "debug_log_clear", "Clear the call log", clear)
            .description("Forget the noted calls")
            .destructive(true)
            .idempotent(),
        tool(
            call_log,
            "debug_log_status",
            "Show the state of the call log",
            status,
        )
        .description("Say whether calls are noted, and how many are")
        .read_only()
        .idempotent(),
        tool(call_log, "debug_log_query", "Query the call log", query)
            .description("Show your last calls to this server, with durations")
            .read_only()
            .idempotent(),
        tool(
            call_log,
            "debug_log_tree",
            "Show the call log as a tree",
            tree,
        )
        .description("Show your last calls as a tree")
        .read_only()
        .idempotent(),
    ]
}

fn create(log: &mut OwnerLog, arguments: &CreateSessionArgs) -> Result<DebugSession, ContextError> {
    log.open(&arguments.program, arguments.target_type.as_str())
}

fn list(log: &mut OwnerLog, _: &EmptyArgs) -> Result<SessionList, ContextError> {
    let sessions = log.sessions();
    Ok(SessionList { sessions })
}

fn close(log: &mut OwnerLog, arguments: &CloseSessionArgs) -> Result<SessionClosed, ContextError> {
    log.close(&arguments.session_id)?;
    Ok(SessionClosed {
        closed: arguments.session_id.clone(),
        status: "ok",
    })
}

fn enable(log: &mut OwnerLog, arguments: &EnableLogArgs) -> Result<LogEnabled, ContextError> {
    let pattern = NamePattern::new(&arguments.pattern)?;
    let filter_pattern = pattern.to_string();
    log.enable(pattern);
    Ok(LogEnabled {
        status: "enabled",
        filter_pattern,
    })
}

fn disable(log: &mut OwnerLog, _: &EmptyArgs) -> Result<LogDisabled, ContextError> {
    log.disable();
    let status = "disabled";
    Ok(LogDisabled { status })
}

fn clear(log: &mut OwnerLog, _: &EmptyArgs) -> Result<LogCleared, ContextError> {
    log.clear();
    Ok(LogCleared {
        status: "cleared",
        entry_count: log.len(),
    })
}

fn status(log: &mut OwnerLog, _: &EmptyArgs) -> Result<CallLogStatus, ContextError> {
    Ok(CallLogStatus::from_log(log))
}

fn query(log: &mut OwnerLog, arguments: &QueryLogArgs) -> Result<LogEntries, ContextError> {
    let function = arguments.function_pattern.as_deref();
    let entries = log.query(&LogQuery {
        since: arguments.since_id,
        kind: arguments.entry_type,
        function: function.map(NamePattern::new).transpose()?,
        limit: arguments.max_results.into(),
    });
    let count = entries.len();
    Ok(LogEntries { count, entries })
}

fn tree(log: &mut OwnerLog, arguments: &TreeArgs) -> Result<LogTree, ContextError> {
    let options = RenderOptions {
        max_depth: arguments.max_depth,
        since: arguments.since_id.unwrap_or(0),
        expanded: arguments.expanded_groups.clone(),
    };
    let forest = CallNode::forest(log.entries(), &options);
    let text = CallNode::render(&forest);
    Ok(LogTree {
        format: arguments.format.as_str(),
        tree: match arguments.format {
            TreeFormat::Text => json!(text),
            TreeFormat::Json => json!(forest),
        },
        text,
    })
}

/// Makes a tool of a function on the caller's notes.
fn tool<A, T>(
    call_log: &CallLog,
    name: &str,
    title: &str,
    work: fn(&mut OwnerLog, &A) -> Result<T, ContextError>,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: ToText + Serialize + JsonSchema + Send + 'static,
{
    let call_log = call_log.clone();
    Tool::new(name, move |arguments: A, cx: Context| {
        let done = call_log.with_log(cx.principal(), |log| work(log, &arguments));
        let done = done.and_then(|done| done).map(ToolResponse);
        std::future::ready(done.map_err(failure::tool_error))
    })
    .title(title)
    .open_world(false)
}
