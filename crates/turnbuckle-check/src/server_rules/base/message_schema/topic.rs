//! Assigns schema violations to rules.

use serde_json::Value;

use crate::message_schema::MessageKind;

/// The subject of a rule about message schemas.
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
    /// Returns the topic of a message; `None` for an unknown method.
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

    /// Returns the topic of a path in a message, if it differs from the topic of the message.
    pub(super) fn for_path(self, path: &str) -> Self {
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

    /// Returns whether a more specific rule checks this path in a response to this method.
    pub(super) fn is_covered_by_other_rule(
        path: &str,
        method: Option<&str>,
        message: &Value,
    ) -> bool {
        let is_task_method = method.is_some_and(|method| method.starts_with("tasks/"));
        match path {
            // `tasks.result-types`, and `input.only-where-allowed`.
            "result.resultType" => {
                is_task_method || message["result"]["resultType"] == "input_required"
            }
            // The rules that cause the errors.
            _ if path.starts_with("error.data") => true,
            // `input.asks-for-something`.
            _ if path.starts_with("result.inputRequests.") && path.ends_with(".method") => true,
            // `elicitation.flat-form`.
            _ => path.contains(".requestedSchema.properties.") && path.ends_with(".type"),
        }
    }

    /// Returns the requirement that a violation at this path breaks, if it is not the first of the rule.
    pub(super) fn requirement(self, path: &str, observed: &str) -> Option<&'static str> {
        let is_missing = observed.contains("it is missing");
        let is_negative = observed.contains("number `-");
        let member = path.rsplit('.').next().unwrap_or_default();
        Some(match (self, member) {
            (Self::Envelope, "jsonrpc") => "base.jsonrpc.version-field",
            (Self::Envelope, _) if observed.contains("it is an array") => "base.batch.removed",
            (Self::Envelope, _) if observed.contains("both are present") => "base.response.one-of",
            (Self::Errors, "code") if !is_missing => "base.error.code-integer",
            (Self::ResultType, _) if !is_missing => "base.result-type.allowed-set",
            (Self::Caching, "ttlMs") if is_negative => "caching.ttl.non-negative",
            (Self::Caching, "ttlMs") if !is_missing => "caching.ttl.integer",
            (Self::Caching, "cacheScope") if !is_missing => "caching.scope.value",
            (Self::ToolResult, "content") => "tools.result.content-array",
            (Self::ToolResult, "structuredContent") => "tools.output.structured-object",
            (Self::Notifications, "data") => "logging.message.shape",
            (Self::Notifications, "level") if !is_missing => "logging.levels",
            (Self::Requests, "maxTokens") => "sampling.max-tokens.required",
            (Self::Tasks, "createdAt") => "tasks.get.created-at",
            (Self::Tasks, "lastUpdatedAt") => "tasks.get.updated-at",
            (Self::Tasks, "ttl") => "tasks.get.ttl",
            _ => return None,
        })
    }

    /// Returns a noun for the messages of the topic.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Envelope => "message",
            Self::Errors => "error",
            Self::Initialize => "result of `initialize`",
            Self::Discover => "result of `server/discover`",
            Self::ServerInfo => "server info",
            Self::ResultType => "result with `resultType`",
            Self::Caching => "cacheable result",
            Self::Meta => "result",
            Self::ToolList => "list of tools",
            Self::ToolResult => "tool result",
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
