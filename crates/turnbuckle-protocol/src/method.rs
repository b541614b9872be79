//! The one table of methods.
//!
//! Who may send a method, from which revision to which, what it needs and where its name is for `Mcp-Name`: all
//! of it is here, and nobody else keeps a list of methods.

use crate::revision::Revision::{self, V2024_10_07, V2025_06_18, V2025_11_25, V2026_07_28};

/// A method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Method {
    /// The name on the wire.
    pub name: &'static str,
    /// Whether it wants an answer.
    pub kind: Kind,
    /// Who sends it in revisions with a handshake, if they have it.
    pub legacy: Option<Direction>,
    /// Who sends it in 2026-07-28, if that has it.
    pub modern: Option<Direction>,
    /// The first revision that has it.
    pub first: Revision,
    /// The last revision that has it.
    pub last: Revision,
    /// Whether its result comes in pages.
    pub paginated: bool,
    /// Whether a modern result may ask for input first.
    pub may_ask: bool,
    /// What its receiver has to have declared.
    pub capability: Option<Capability>,
    /// The parameter that `Mcp-Name` repeats.
    pub name_member: Option<&'static str>,
}

/// Whether a message wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It does.
    Request,
    /// It does not.
    Notification,
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    ToServer,
    /// The server.
    ToClient,
    /// Either.
    Both,
    /// Nobody on its own: it is an entry of `inputRequests` in a result.
    InResult,
}

/// What has to be declared before a method may be used, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
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
    pub fn named(name: &str) -> Option<&'static Self> {
        // The names are few and differ early: the compiler makes a switch over lengths and bytes of this.
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

    /// Says whether a revision has the method.
    pub fn is_in(&self, revision: Revision) -> bool {
        self.direction(revision).is_some()
    }

    /// Returns who sends the method in a revision, if that has it.
    pub fn direction(&self, revision: Revision) -> Option<Direction> {
        if revision < self.first || self.last < revision {
            return None;
        }
        if revision == V2026_07_28 {
            self.modern
        } else {
            self.legacy
        }
    }

    /// Describes a request to a server that an extension defines, and that no revision knows.
    pub const fn of_extension(name: &'static str) -> Self {
        Self::request(name, Direction::ToServer)
    }

    const fn request(name: &'static str, direction: Direction) -> Self {
        Self {
            name,
            kind: Kind::Request,
            legacy: Some(direction),
            modern: Some(direction),
            first: V2024_10_07,
            last: V2026_07_28,
            paginated: false,
            may_ask: false,
            capability: None,
            name_member: None,
        }
    }

    const fn notification(name: &'static str, direction: Direction) -> Self {
        Self {
            kind: Kind::Notification,
            ..Self::request(name, direction)
        }
    }

    /// Retired by 2026-07-28.
    const fn only_legacy(self) -> Self {
        Self {
            modern: None,
            last: V2025_11_25,
            ..self
        }
    }

    /// Added by 2026-07-28.
    const fn only_modern(self) -> Self {
        Self {
            legacy: None,
            first: V2026_07_28,
            ..self
        }
    }

    const fn modern(self, direction: Direction) -> Self {
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

    const fn may_ask(self) -> Self {
        Self {
            may_ask: true,
            ..self
        }
    }

    const fn needs(self, capability: Capability) -> Self {
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

use Direction::{Both, InResult, ToClient, ToServer};

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
    /// Asks whether the other side is there.
    PING = Method::request("ping", Both).only_legacy();
    /// Asks a server what it is and can do.
    SERVER_DISCOVER = Method::request("server/discover", ToServer).only_modern();
    /// Asks for notifications of changes.
    SUBSCRIPTIONS_LISTEN = Method::request("subscriptions/listen", ToServer).only_modern();

    /// Lists tools.
    TOOLS_LIST = Method::request("tools/list", ToServer).paginated().needs(Capability::Tools);
    /// Calls a tool.
    TOOLS_CALL = Method::request("tools/call", ToServer)
        .may_ask()
        .needs(Capability::Tools)
        .named_by("name");

    /// Lists resources.
    RESOURCES_LIST = Method::request("resources/list", ToServer)
        .paginated()
        .needs(Capability::Resources);
    /// Lists templates of resources.
    RESOURCES_TEMPLATES_LIST = Method::request("resources/templates/list", ToServer)
        .paginated()
        .needs(Capability::Resources);
    /// Reads a resource.
    RESOURCES_READ = Method::request("resources/read", ToServer)
        .may_ask()
        .needs(Capability::Resources)
        .named_by("uri");
    /// Asks for notifications when a resource changes.
    RESOURCES_SUBSCRIBE = Method::request("resources/subscribe", ToServer)
        .only_legacy()
        .needs(Capability::ResourcesSubscribe);
    /// Ends these notifications.
    RESOURCES_UNSUBSCRIBE = Method::request("resources/unsubscribe", ToServer)
        .only_legacy()
        .needs(Capability::ResourcesSubscribe);

    /// Lists prompts.
    PROMPTS_LIST = Method::request("prompts/list", ToServer)
        .paginated()
        .needs(Capability::Prompts);
    /// Asks for a prompt.
    PROMPTS_GET = Method::request("prompts/get", ToServer)
        .may_ask()
        .needs(Capability::Prompts)
        .named_by("name");
    /// Asks how an argument could go on.
    COMPLETION_COMPLETE = Method::request("completion/complete", ToServer)
        .needs(Capability::Completions);
    /// Sets the level of log messages.
    LOGGING_SET_LEVEL = Method::request("logging/setLevel", ToServer)
        .only_legacy()
        .needs(Capability::Logging);

    /// Asks the model of the client.
    SAMPLING_CREATE_MESSAGE = Method::request("sampling/createMessage", ToClient)
        .modern(InResult)
        .needs(Capability::Sampling);
    /// Asks for the roots of the client.
    ROOTS_LIST = Method::request("roots/list", ToClient)
        .modern(InResult)
        .needs(Capability::Roots);
    /// Asks the user of the client.
    ELICITATION_CREATE = Method::request("elicitation/create", ToClient)
        .modern(InResult)
        .since(V2025_06_18)
        .needs(Capability::Elicitation);

    /// Looks at a task.
    TASKS_GET = Method::request("tasks/get", Both)
        .modern(ToServer)
        .since(V2025_11_25)
        .needs(Capability::Tasks)
        .named_by("taskId");
    /// Cancels a task.
    TASKS_CANCEL = Method::request("tasks/cancel", Both)
        .modern(ToServer)
        .since(V2025_11_25)
        .needs(Capability::Tasks)
        .named_by("taskId");
    /// Answers questions of a task.
    TASKS_UPDATE = Method::request("tasks/update", ToServer)
        .only_modern()
        .needs(Capability::Tasks)
        .named_by("taskId");
    /// Waits for the result of a task.
    TASKS_RESULT = Method::request("tasks/result", Both)
        .only_legacy()
        .since(V2025_11_25)
        .needs(Capability::Tasks);
    /// Lists tasks.
    TASKS_LIST = Method::request("tasks/list", Both)
        .only_legacy()
        .since(V2025_11_25)
        .paginated()
        .needs(Capability::Tasks);

    /// Says that the client is ready.
    INITIALIZED = Method::notification("notifications/initialized", ToServer).only_legacy();
    /// Gives up on a request.
    CANCELLED = Method::notification("notifications/cancelled", Both);
    /// Says how far a request has come.
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
    /// A visit to a URL is over.
    ELICITATION_COMPLETE = Method::notification("notifications/elicitation/complete", ToClient)
        .only_legacy()
        .since(V2025_11_25);
    /// A task of 2025-11-25 changed.
    TASKS_STATUS = Method::notification("notifications/tasks/status", Both)
        .only_legacy()
        .since(V2025_11_25);
    /// A task changed.
    TASKS_CHANGED = Method::notification("notifications/tasks", ToClient).only_modern();
    /// What a listen stream will bring.
    SUBSCRIPTIONS_ACKNOWLEDGED =
        Method::notification("notifications/subscriptions/acknowledged", ToClient).only_modern();
}
