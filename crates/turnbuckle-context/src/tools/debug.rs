//! The debug tools: what this server was just asked, and how long it took.

mod answers;
mod arguments;

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use turnbuckle_protocol::types::{CallToolResult, ContentBlock};
use turnbuckle_server::{Context, IntoOutput, Output, Tool, ToolError};

use crate::ContextError;
use crate::trace::{Glob, Log, Node, Session, Shown, Status, Trace, Wanted};
use answers::{Cleared, Closed, Enabled, Found, Sessions, Switched, Tree};
use arguments::{Close, Create, Enable, Format, Nothing, Query, TreeArguments};

/// The nine debug tools. Each caller sees its own calls.
pub fn all(trace: &Trace) -> Vec<Tool> {
    vec![
        tool(trace, "debug_create_session", create)
            .description("Open a debug session: calls made until it is closed are grouped below it")
            .destructive(false),
        tool(trace, "debug_list_sessions", list)
            .description("List open debug sessions")
            .read_only()
            .idempotent(),
        tool(trace, "debug_close_session", close)
            .description("Close a debug session")
            .destructive(true)
            .idempotent(),
        tool(trace, "debug_log_enable", enable)
            .description("Note calls to this server whose name matches a pattern; on by default")
            .destructive(false)
            .idempotent(),
        tool(trace, "debug_log_disable", disable)
            .description("Stop noting calls")
            .destructive(false)
            .idempotent(),
        tool(trace, "debug_log_clear", clear)
            .description("Forget the noted calls")
            .destructive(true)
            .idempotent(),
        tool(trace, "debug_log_status", status)
            .description("Say whether calls are noted, and how many are")
            .read_only()
            .idempotent(),
        tool(trace, "debug_log_query", query)
            .description("Show your last calls to this server, with durations")
            .read_only()
            .idempotent(),
        tool(trace, "debug_log_tree", tree)
            .description("Show your last calls as a tree")
            .read_only()
            .idempotent(),
    ]
}

fn create(log: &mut Log, arguments: &Create) -> Result<Said<Session>, ContextError> {
    let target = arguments.target_type.as_str();
    let session = log.open(&arguments.program, target)?;
    let text = format!(
        "{} is open ({}): calls are grouped below it until it is closed",
        session.session_id, session.state
    );
    Ok(Said::new(text, session))
}

fn list(log: &mut Log, _: &Nothing) -> Result<Said<Sessions>, ContextError> {
    let sessions = log.sessions();
    let mut text = String::new();
    for session in &sessions {
        let _ = writeln!(
            text,
            "{} {} ({}) {}",
            session.session_id, session.program, session.target_type, session.state
        );
    }
    if sessions.is_empty() {
        text.push_str("no debug session is open");
    }
    Ok(Said::new(text, Sessions { sessions }))
}

fn close(log: &mut Log, arguments: &Close) -> Result<Said<Closed>, ContextError> {
    log.close(&arguments.session_id)?;
    let closed = arguments.session_id.clone();
    let text = format!("{closed} is closed");
    Ok(Said::new(
        text,
        Closed {
            closed,
            status: "ok",
        },
    ))
}

fn enable(log: &mut Log, arguments: &Enable) -> Result<Said<Enabled>, ContextError> {
    let pattern = Glob::new(&arguments.pattern)?;
    let filter_pattern = pattern.to_string();
    log.enable(pattern);
    let text = format!("calls that match `{filter_pattern}` are noted");
    let status = "enabled";
    Ok(Said::new(
        text,
        Enabled {
            status,
            filter_pattern,
        },
    ))
}

fn disable(log: &mut Log, _: &Nothing) -> Result<Said<Switched>, ContextError> {
    log.disable();
    let status = "disabled";
    Ok(Said::new("calls are no longer noted", Switched { status }))
}

fn clear(log: &mut Log, _: &Nothing) -> Result<Said<Cleared>, ContextError> {
    log.clear();
    let cleared = Cleared {
        status: "cleared",
        entry_count: log.len(),
    };
    Ok(Said::new("the log is empty", cleared))
}

fn status(log: &mut Log, _: &Nothing) -> Result<Said<Status>, ContextError> {
    let status = Status::of(log);
    // As JSON: scripts look for `"enabled":true` in it.
    Ok(Said::new(json!(status).to_string(), status))
}

fn query(log: &mut Log, arguments: &Query) -> Result<Said<Found>, ContextError> {
    let function = arguments.function_pattern.as_deref();
    let entries = log.query(&Wanted {
        since: arguments.since_id,
        kind: arguments.entry_type,
        function: function.map(Glob::new).transpose()?,
        most: arguments.max_results.into(),
    });
    let text = match entries.is_empty() {
        true => "nothing of this is noted".to_owned(),
        false => entries.iter().map(ToString::to_string).collect(),
    };
    let count = entries.len();
    Ok(Said::new(text, Found { count, entries }))
}

fn tree(log: &mut Log, arguments: &TreeArguments) -> Result<Said<Tree>, ContextError> {
    let shown = Shown {
        max_depth: arguments.max_depth,
        since: arguments.since_id.unwrap_or(0),
        expanded: arguments.expanded_groups.clone(),
    };
    let forest = Node::forest(log.entries(), &shown);
    let text = match forest.is_empty() {
        true => "nothing is noted".to_owned(),
        false => Node::render(&forest),
    };
    let tree = match arguments.format {
        Format::Text => json!(text),
        Format::Json => json!(forest),
    };
    let format = arguments.format.as_str();
    Ok(Said::new(text, Tree { format, tree }))
}

/// Makes a tool of a function on the caller's notes.
fn tool<A, T>(
    trace: &Trace,
    name: &str,
    work: fn(&mut Log, &A) -> Result<Said<T>, ContextError>,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Answer,
{
    let trace = trace.clone();
    Tool::new(name, move |arguments: A, cx: Context| {
        let done = trace.with(cx.principal(), |log| work(log, &arguments));
        let done = done.and_then(|done| done);
        std::future::ready(done.map_err(|error| ToolError::new(error.to_string())))
    })
    .open_world(false)
}

/// What a tool answers, for programs.
trait Answer: Serialize + JsonSchema + Send + 'static {}

impl<T: Serialize + JsonSchema + Send + 'static> Answer for T {}

/// An answer for programs, and what people and models read of it.
struct Said<T> {
    text: String,
    answer: T,
}

impl<T: Answer> Said<T> {
    fn new(text: impl Into<String>, answer: T) -> Self {
        let text = text.into();
        Self { text, answer }
    }
}

impl<T: Answer> IntoOutput for Said<T> {
    fn output_schema() -> Option<serde_json::Map<String, serde_json::Value>> {
        T::output_schema()
    }

    fn into_output(self, _promised: bool) -> Result<Output, ToolError> {
        let mut result = CallToolResult::default();
        result.content.push(ContentBlock::text(self.text));
        result.structured_content = Some(serde_json::to_value(&self.answer)?);
        Ok(result.into())
    }
}
