//! The debug tools: recent calls of this server and their durations.

use std::{collections::BTreeSet, fmt::Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use turnbuckle_server::{Context, Tool};

use crate::{
    ContextError,
    mcp::{
        call_log::{
            CallLog, CallLogStatus, CallNode, DebugSession, LogEntry, LogEntryType, LogQuery,
            NamePattern, OwnerLog, RenderOptions,
        },
        error_messages,
        tool_response::{ToText, ToolResponse},
    },
};

/// Returns the nine debug tools. Each caller sees its own calls.
pub(crate) fn all(call_log: &CallLog) -> Vec<Tool> {
    vec![
        tool(
            call_log,
            "debug_create_session",
            "Open a debug session",
            create,
        )
        .description("Open a debug session: calls are grouped under it until it is closed")
        .destructive(false),
        tool(call_log, "debug_list_sessions", "List debug sessions", list)
            .description("List open debug sessions")
            .read_only(),
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
            .description("Record calls with names that match a pattern; enabled by default")
            .destructive(false)
            .idempotent(),
        tool(
            call_log,
            "debug_log_disable",
            "Disable the call log",
            disable,
        )
        .description("Stop recording calls")
        .destructive(false)
        .idempotent(),
        tool(call_log, "debug_log_clear", "Clear the call log", clear)
            .description("Delete the recorded calls")
            .destructive(true)
            .idempotent(),
        tool(
            call_log,
            "debug_log_status",
            "Show the state of the call log",
            status,
        )
        .description("Show whether calls are recorded, and how many are")
        .read_only(),
        tool(call_log, "debug_log_query", "Query the call log", query)
            .description("Show your recent calls to this server with durations")
            .read_only(),
        tool(
            call_log,
            "debug_log_tree",
            "Show the call log as a tree",
            tree,
        )
        .description("Show your recent calls as a tree")
        .read_only(),
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

/// Creates a tool from a function on the caller's log.
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
        std::future::ready(done.map_err(error_messages::tool_error))
    })
    .title(title)
    .open_world(false)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct EmptyArgs {}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CreateSessionArgs {
    /// Name of the debugged program.
    #[schemars(length(min = 1, max = 1000))]
    pub(super) program: String,
    #[serde(default)]
    pub(super) target_type: DebugTargetType,
}

/// Kind of program. Only stored with the session.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum DebugTargetType {
    #[default]
    Interpreter,
    Smf,
    Native,
    Remote,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CloseSessionArgs {
    /// From debug_create_session.
    pub(super) session_id: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct EnableLogArgs {
    /// Glob on the name of the tool, prompt, URI or method; include debug tools with `debug*`.
    #[serde(default = "default_pattern")]
    pub(super) pattern: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct QueryLogArgs {
    /// Only entries after this id.
    pub(super) since_id: Option<u64>,
    /// Only starts or only ends of calls.
    pub(super) entry_type: Option<LogEntryType>,
    /// Maximum number.
    #[serde(default = "default_max_results")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) max_results: u16,
    /// Glob on the name of the tool, prompt or URI.
    pub(super) function_pattern: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TreeArgs {
    /// Output format.
    #[serde(default)]
    pub(super) format: TreeFormat,
    /// Maximum depth; default unlimited.
    pub(super) max_depth: Option<u32>,
    /// Only entries after this id.
    pub(super) since_id: Option<u64>,
    /// Ids of groups to expand; default all.
    pub(super) expanded_groups: Option<BTreeSet<u64>>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum TreeFormat {
    #[default]
    Text,
    Json,
}

impl DebugTargetType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Interpreter => "interpreter",
            Self::Smf => "smf",
            Self::Native => "native",
            Self::Remote => "remote",
        }
    }
}

impl TreeFormat {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

fn default_pattern() -> String {
    "*".to_owned()
}

fn default_max_results() -> u16 {
    100
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SessionList {
    pub(super) sessions: Vec<DebugSession>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SessionClosed {
    /// The closed session.
    pub(super) closed: String,
    pub(super) status: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogEnabled {
    pub(super) status: &'static str,
    pub(super) filter_pattern: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogDisabled {
    pub(super) status: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogCleared {
    pub(super) status: &'static str,
    pub(super) entry_count: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogEntries {
    pub(super) count: usize,
    pub(super) entries: Vec<LogEntry>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogTree {
    pub(super) format: &'static str,
    /// Text, or an array of nodes.
    pub(super) tree: Value,
    #[serde(skip)]
    pub(super) text: String,
}

impl ToText for DebugSession {
    fn to_text(&self) -> String {
        format!(
            "{} is open ({}): calls are grouped under it until it is closed",
            self.session_id, self.state
        )
    }
}

impl ToText for SessionList {
    fn to_text(&self) -> String {
        let mut text = String::new();
        for session in &self.sessions {
            let _ = writeln!(
                text,
                "{} {} ({}) {}",
                session.session_id, session.program, session.target_type, session.state
            );
        }
        if text.is_empty() {
            "no debug session is open".to_owned()
        } else {
            text
        }
    }
}

impl ToText for SessionClosed {
    fn to_text(&self) -> String {
        format!("{} is closed", self.closed)
    }
}

impl ToText for LogEnabled {
    fn to_text(&self) -> String {
        format!("calls that match `{}` are recorded", self.filter_pattern)
    }
}

impl ToText for LogDisabled {
    fn to_text(&self) -> String {
        "calls are no longer recorded".to_owned()
    }
}

impl ToText for LogCleared {
    fn to_text(&self) -> String {
        "the log is empty".to_owned()
    }
}

impl ToText for CallLogStatus {
    fn to_text(&self) -> String {
        // As JSON: scripts search for `"enabled":true`.
        json!(self).to_string()
    }
}

impl ToText for LogEntries {
    fn to_text(&self) -> String {
        if self.entries.is_empty() {
            "no matching calls are recorded".to_owned()
        } else {
            self.entries.iter().map(ToString::to_string).collect()
        }
    }
}

impl ToText for LogTree {
    fn to_text(&self) -> String {
        if self.text.is_empty() {
            "no calls are recorded".to_owned()
        } else {
            self.text.clone()
        }
    }
}
