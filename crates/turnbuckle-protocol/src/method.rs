//! The table of methods.
//!
//! Direction, first and last revision, required capability and the parameter for `Mcp-Name` of every method. This is
//! the only list of methods.

use crate::revision::Revision::{self, V2024_10_07, V2025_06_18, V2025_11_25, V2026_07_28};

/// A method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Request or notification.
    pub kind: MethodKind,
    /// The sender in the legacy era, if the method exists there.
    pub legacy: Option<MethodDirection>,
    /// The sender in 2026-07-28, if the method exists there.
    pub modern: Option<MethodDirection>,
    /// The first revision that has it.
    pub first: Revision,
    /// The last revision that has it.
    pub last: Revision,
    /// Set if the result is paginated.
    pub paginated: bool,
    /// Set if a modern result may be `input_required`.
    pub allows_input_requests: bool,
    /// The capability that the receiver must have declared.
    pub capability: Option<RequiredCapability>,
    /// The parameter that `Mcp-Name` repeats.
    pub name_member: Option<&'static str>,
}

/// The kind of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// Expects a response.
    Request,
    /// Expects no response.
    Notification,
}

/// The sender of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodDirection {
    /// Sent by the client.
    ToServer,
    /// Sent by the server.
    ToClient,
    /// Sent by either side.
    Both,
    /// Not sent by itself, but an entry of `inputRequests` in a result.
    InResult,
}

/// The capability that a method requires, and the side that declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequiredCapability {
    /// `tools` of the server.
    Tools,
    /// `resources` of the server.
    Resources,
    /// `resources.subscribe` of the server.
    ResourcesSubscribe,
    /// `prompts` of the server.
    Prompts,
    /// `completions` of the server; before 2025-03-26 it is not declared.
    Completions,
    /// `logging` of the server.
    Logging,
    /// `roots` of the client.
    Roots,
    /// `sampling` of the client.
    Sampling,
    /// `elicitation` of the client.
    Elicitation,
    /// `tasks` of the receiver in 2025-11-25, the tasks extension of both sides in 2026-07-28.
    Tasks,
}

impl Method {
    /// Returns a method by its name.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        // The compiler turns this into a switch over lengths and bytes.
        Some(match name {
            "tools/call" => &TOOLS_CALL,
            "tools/list" => &TOOLS_LIST,
            "resources/read" => &RESOURCES_READ,
            "resources/list" => &RESOURCES_LIST,
            "resources/templates/list" => &RESOURCES_TEMPLATES_LIST,
            "resources/subscribe" => &RESOURCES_SUBSCRIBE,
            "resources/unsubscribe" => &RESOURCES_UNSUBSCRIBE,
            "prompts/get" => &PROMPTS_GET,
            "prompts/list" => &PROMPTS_LIST,
            "completion/complete" => &COMPLETION_COMPLETE,
            "server/discover" => &SERVER_DISCOVER,
            "subscriptions/listen" => &SUBSCRIPTIONS_LISTEN,
            "initialize" => &INITIALIZE,
            "ping" => &PING,
            "logging/setLevel" => &LOGGING_SET_LEVEL,
            "sampling/createMessage" => &SAMPLING_CREATE_MESSAGE,
            "roots/list" => &ROOTS_LIST,
            "elicitation/create" => &ELICITATION_CREATE,
            "tasks/get" => &TASKS_GET,
            "tasks/update" => &TASKS_UPDATE,
            "tasks/cancel" => &TASKS_CANCEL,
            "tasks/result" => &TASKS_RESULT,
            "tasks/list" => &TASKS_LIST,
            "notifications/initialized" => &INITIALIZED,
            "notifications/cancelled" => &CANCELLED,
            "notifications/progress" => &PROGRESS,
            "notifications/message" => &MESSAGE,
            "notifications/tools/list_changed" => &TOOLS_LIST_CHANGED,
            "notifications/prompts/list_changed" => &PROMPTS_LIST_CHANGED,
            "notifications/resources/list_changed" => &RESOURCES_LIST_CHANGED,
            "notifications/resources/updated" => &RESOURCES_UPDATED,
            "notifications/roots/list_changed" => &ROOTS_LIST_CHANGED,
            "notifications/elicitation/complete" => &ELICITATION_COMPLETE,
            "notifications/tasks/status" => &TASKS_STATUS,
            "notifications/tasks" => &TASKS_CHANGED,
            "notifications/subscriptions/acknowledged" => &SUBSCRIPTIONS_ACKNOWLEDGED,
            _ => return None,
        })
    }

    /// Returns whether the method exists in a revision.
    pub fn is_in(&self, revision: Revision) -> bool {
        self.direction(revision).is_some()
    }

    /// Returns the sender of the method in a revision, if it exists there.
    pub fn direction(&self, revision: Revision) -> Option<MethodDirection> {
        if revision < self.first || self.last < revision {
            return None;
        }
        if revision.is_stateless() {
            self.modern
        } else {
            self.legacy
        }
    }

    /// Creates a request to the server that is defined by an extension.
    pub const fn for_extension(name: &'static str) -> Self {
        Self::request(name, MethodDirection::ToServer)
    }

    const fn request(name: &'static str, direction: MethodDirection) -> Self {
        Self {
            name,
            kind: MethodKind::Request,
            legacy: Some(direction),
            modern: Some(direction),
            first: V2024_10_07,
            last: Revision::MODERN,
            paginated: false,
            allows_input_requests: false,
            capability: None,
            name_member: None,
        }
    }

    const fn notification(name: &'static str, direction: MethodDirection) -> Self {
        Self {
            kind: MethodKind::Notification,
            ..Self::request(name, direction)
        }
    }

    /// Removed in 2026-07-28.
    const fn only_legacy(self) -> Self {
        Self {
            modern: None,
            last: V2025_11_25,
            ..self
        }
    }

    /// Added in 2026-07-28.
    const fn modern_only(self) -> Self {
        Self {
            legacy: None,
            first: V2026_07_28,
            ..self
        }
    }

    const fn modern(self, direction: MethodDirection) -> Self {
        Self {
            modern: Some(direction),
            ..self
        }
    }

    const fn since(self, first: Revision) -> Self {
        Self { first, ..self }
    }

    const fn paginated(self) -> Self {
        Self {
            paginated: true,
            ..self
        }
    }

    const fn allows_input_requests(self) -> Self {
        Self {
            allows_input_requests: true,
            ..self
        }
    }

    const fn requires(self, capability: RequiredCapability) -> Self {
        Self {
            capability: Some(capability),
            ..self
        }
    }

    const fn named_by(self, member: &'static str) -> Self {
        Self {
            name_member: Some(member),
            ..self
        }
    }
}

use MethodDirection::{Both, InResult, ToClient, ToServer};

macro_rules! methods {
    ($($(#[$doc:meta])* $constant:ident = $method:expr;)*) => {
        $($(#[$doc])* pub const $constant: Method = $method;)*

        impl Method {
            /// Every method.
            pub const ALL: &[Self] = &[$($constant),*];
        }
    };
}

methods! {
    /// Opens a session.
    INITIALIZE = Method::request("initialize", ToServer).only_legacy();
    /// Checks that the peer is alive.
    PING = Method::request("ping", Both).only_legacy();
    /// Requests the capabilities and implementation info of a server.
    SERVER_DISCOVER = Method::request("server/discover", ToServer).modern_only();
    /// Requests change notifications.
    SUBSCRIPTIONS_LISTEN = Method::request("subscriptions/listen", ToServer).modern_only();

    /// Lists tools.
    TOOLS_LIST = Method::request("tools/list", ToServer).paginated().requires(RequiredCapability::Tools);
    /// Calls a tool.
    TOOLS_CALL = Method::request("tools/call", ToServer)
        .allows_input_requests()
        .requires(RequiredCapability::Tools)
        .named_by("name");

    /// Lists resources.
    RESOURCES_LIST = Method::request("resources/list", ToServer)
        .paginated()
        .requires(RequiredCapability::Resources);
    /// Lists resource templates.
    RESOURCES_TEMPLATES_LIST = Method::request("resources/templates/list", ToServer)
        .paginated()
        .requires(RequiredCapability::Resources);
    /// Reads a resource.
    RESOURCES_READ = Method::request("resources/read", ToServer)
        .allows_input_requests()
        .requires(RequiredCapability::Resources)
        .named_by("uri");
    /// Subscribes to changes of a resource.
    RESOURCES_SUBSCRIBE = Method::request("resources/subscribe", ToServer)
        .only_legacy()
        .requires(RequiredCapability::ResourcesSubscribe);
    /// Unsubscribes from changes of a resource.
    RESOURCES_UNSUBSCRIBE = Method::request("resources/unsubscribe", ToServer)
        .only_legacy()
        .requires(RequiredCapability::ResourcesSubscribe);

    /// Lists prompts.
    PROMPTS_LIST = Method::request("prompts/list", ToServer)
        .paginated()
        .requires(RequiredCapability::Prompts);
    /// Gets a prompt.
    PROMPTS_GET = Method::request("prompts/get", ToServer)
        .allows_input_requests()
        .requires(RequiredCapability::Prompts)
        .named_by("name");
    /// Completes a prompt argument or resource template variable.
    COMPLETION_COMPLETE = Method::request("completion/complete", ToServer)
        .requires(RequiredCapability::Completions);
    /// Sets the minimum level of log messages.
    LOGGING_SET_LEVEL = Method::request("logging/setLevel", ToServer)
        .only_legacy()
        .requires(RequiredCapability::Logging);

    /// Requests a completion from the model of the client.
    SAMPLING_CREATE_MESSAGE = Method::request("sampling/createMessage", ToClient)
        .modern(InResult)
        .requires(RequiredCapability::Sampling);
    /// Lists the roots of the client.
    ROOTS_LIST = Method::request("roots/list", ToClient)
        .modern(InResult)
        .requires(RequiredCapability::Roots);
    /// Requests input from the user of the client.
    ELICITATION_CREATE = Method::request("elicitation/create", ToClient)
        .modern(InResult)
        .since(V2025_06_18)
        .requires(RequiredCapability::Elicitation);

    /// Gets the status of a task.
    TASKS_GET = Method::request("tasks/get", Both)
        .modern(ToServer)
        .since(V2025_11_25)
        .requires(RequiredCapability::Tasks)
        .named_by("taskId");
    /// Cancels a task.
    TASKS_CANCEL = Method::request("tasks/cancel", Both)
        .modern(ToServer)
        .since(V2025_11_25)
        .requires(RequiredCapability::Tasks)
        .named_by("taskId");
    /// Sends input responses to a task.
    TASKS_UPDATE = Method::request("tasks/update", ToServer)
        .modern_only()
        .requires(RequiredCapability::Tasks)
        .named_by("taskId");
    /// Waits for the result of a task.
    TASKS_RESULT = Method::request("tasks/result", Both)
        .only_legacy()
        .since(V2025_11_25)
        .requires(RequiredCapability::Tasks);
    /// Lists tasks.
    TASKS_LIST = Method::request("tasks/list", Both)
        .only_legacy()
        .since(V2025_11_25)
        .paginated()
        .requires(RequiredCapability::Tasks);

    /// The client is initialized.
    INITIALIZED = Method::notification("notifications/initialized", ToServer).only_legacy();
    /// Cancels a request.
    CANCELLED = Method::notification("notifications/cancelled", Both);
    /// Reports progress of a request.
    PROGRESS = Method::notification("notifications/progress", Both).modern(ToClient);
    /// A log message.
    MESSAGE = Method::notification("notifications/message", ToClient);
    /// The list of tools changed.
    TOOLS_LIST_CHANGED = Method::notification("notifications/tools/list_changed", ToClient);
    /// The list of prompts changed.
    PROMPTS_LIST_CHANGED = Method::notification("notifications/prompts/list_changed", ToClient);
    /// The list of resources changed.
    RESOURCES_LIST_CHANGED =
        Method::notification("notifications/resources/list_changed", ToClient);
    /// A resource changed.
    RESOURCES_UPDATED = Method::notification("notifications/resources/updated", ToClient);
    /// The list of roots changed.
    ROOTS_LIST_CHANGED =
        Method::notification("notifications/roots/list_changed", ToServer).only_legacy();
    /// A URL elicitation completed.
    ELICITATION_COMPLETE = Method::notification("notifications/elicitation/complete", ToClient)
        .only_legacy()
        .since(V2025_11_25);
    /// A task of 2025-11-25 changed.
    TASKS_STATUS = Method::notification("notifications/tasks/status", Both)
        .only_legacy()
        .since(V2025_11_25);
    /// A task changed.
    TASKS_CHANGED = Method::notification("notifications/tasks", ToClient).modern_only();
    /// Acknowledges a `subscriptions/listen` request.
    SUBSCRIPTIONS_ACKNOWLEDGED =
        Method::notification("notifications/subscriptions/acknowledged", ToClient).modern_only();
}
