//! Which rule a flaw belongs to.

use serde_json::Value;

use crate::message_schema::MessageKind;

/// What a rule about shapes looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SchemaTopic {
    Envelope,
    Errors,
    Initialize,
    Discover,
    ServerInfo,
    ResultType,
    Caching,
    Meta,
    ToolList,
    ToolResult,
    Content,
    Resources,
    Prompts,
    Completion,
    EmptyResults,
    Notifications,
    Requests,
    Tasks,
}

impl SchemaTopic {
    /// Returns what a message as a whole is about; nothing if nobody knows its method.
    pub(super) fn for_message(kind: MessageKind, method: Option<&str>) -> Option<Self> {
        Some(match (kind, method?) {
            (MessageKind::Request, _) => Self::Requests,
            (MessageKind::Notification, method) if method.starts_with("notifications/tasks") => {
                Self::Tasks
            }
            (MessageKind::Notification, _) => Self::Notifications,
            (MessageKind::Error, _) => Self::Errors,
            (MessageKind::Result, "initialize") => Self::Initialize,
            (MessageKind::Result, "server/discover") => Self::Discover,
            (MessageKind::Result, "tools/list") => Self::ToolList,
            (MessageKind::Result, "tools/call") => Self::ToolResult,
            (
                MessageKind::Result,
                "resources/list" | "resources/templates/list" | "resources/read",
            ) => Self::Resources,
            (MessageKind::Result, "prompts/list" | "prompts/get") => Self::Prompts,
            (MessageKind::Result, "completion/complete") => Self::Completion,
            (
                MessageKind::Result,
                "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe",
            ) => Self::EmptyResults,
            (MessageKind::Result, method) if method.starts_with("tasks/") => Self::Tasks,
            (MessageKind::Result, _) => return None,
        })
    }

    /// Returns what a place in a message is about, if that is something of its own.
    pub(super) fn of_place(self, path: &str) -> Self {
        let in_task = path.starts_with("result.task.") || path == "result.task";
        match path {
            "result.resultType" => Self::ResultType,
            "result.ttlMs" | "result.cacheScope" if self != Self::Tasks => Self::Caching,
            _ if in_task => Self::Tasks,
            _ if path.starts_with("result.inputRequests") || path == "result.requestState" => {
                Self::Requests
            }
            _ if path.contains(".content[") || path.contains(".content.") => Self::Content,
            _ if path.starts_with("result.serverInfo.") || path.contains("/serverInfo") => {
                Self::ServerInfo
            }
            _ if path.starts_with("result._meta") => Self::Meta,
            _ => self,
        }
    }

    /// Says whether another rule looks at this place in an answer to this method: one that knows what is meant there.
    pub(super) fn is_judged_elsewhere(path: &str, method: Option<&str>, message: &Value) -> bool {
        let of_task = method.is_some_and(|method| method.starts_with("tasks/"));
        match path {
            // `tasks.result-types`, and `input.only-where-allowed`.
            "result.resultType" => of_task || message["result"]["resultType"] == "input_required",
            // The rules that provoke the errors in question.
            _ if path.starts_with("error.data") => true,
            // `input.asks-for-something`.
            _ if path.starts_with("result.inputRequests.") && path.ends_with(".method") => true,
            // `elicitation.flat-form`.
            _ => path.contains(".requestedSchema.properties.") && path.ends_with(".type"),
        }
    }

    /// Names the messages that it is about.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Envelope => "message",
            Self::Errors => "error",
            Self::Initialize => "result of `initialize`",
            Self::Discover => "result of `server/discover`",
            Self::ServerInfo => "information about itself",
            Self::ResultType => "result that has a type",
            Self::Caching => "result that may be cached",
            Self::Meta => "result",
            Self::ToolList => "list of tools",
            Self::ToolResult => "result of a tool",
            Self::Content => "content",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
            Self::Completion => "completion",
            Self::EmptyResults => "empty result",
            Self::Notifications => "notification",
            Self::Requests => "request",
            Self::Tasks => "task",
        }
    }
}
