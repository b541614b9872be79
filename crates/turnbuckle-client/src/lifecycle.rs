//! Negotiation of a revision, and the rules that follow from it.
//!
//! Only this module compares revisions. Other modules read the fields of [`RevisionRules`].

mod detect;
mod session;
mod stateless;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
};

use http::HeaderValue;
use turnbuckle_protocol::{
    Meta, Revision,
    method::{self, Method, RequiredCapability},
    types::{ClientCapabilities, Implementation, ServerCapabilities},
};

pub(crate) use crate::lifecycle::detect::{LifecycleProbe, is_modern_error, negotiate};
use crate::{builder::LifecycleMode, error::CallError, sync::lock, target::ServerInfo};

/// The era of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// The server keeps a session: 2025-11-25 and before.
    Legacy,
    /// Every request is independent: since 2026-07-28.
    Modern,
}

/// The negotiated state.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) rules: Arc<RevisionRules>,
    pub(crate) server: Arc<ServerInfo>,
}

impl Negotiated {
    /// Returns the state before negotiation: only legacy servers send requests then, such as `ping`.
    pub(crate) fn before_negotiation(mode: LifecycleMode) -> Self {
        let rules = RevisionRules {
            server_requests_allowed: mode != LifecycleMode::Modern,
            roots_notifications: false,
            ..session::opening_rules()
        };
        Self {
            server: Arc::new(ServerInfo {
                info: None,
                capabilities: ServerCapabilities::default(),
                instructions: None,
                revision: rules.revision,
                era: Era::Legacy,
                supported_versions: Vec::new(),
                meta: Meta::default(),
            }),
            rules: Arc::new(rules),
        }
    }

    /// Returns an error if the revision does not define a method, or the server did not advertise its capability.
    pub(crate) fn check_method(&self, method: &'static Method) -> Result<(), CallError> {
        let (rules, capabilities) = (&self.rules, &self.server.capabilities);
        if !method.is_in(rules.revision) {
            return Err(CallError::NotInRevision {
                method: method.name,
                revision: rules.revision,
            });
        }
        let Some(needed) = method.capability else {
            return Ok(());
        };
        let (declared, capability) = match needed {
            RequiredCapability::Tools => (capabilities.tools.is_some(), "tools"),
            RequiredCapability::Resources => (capabilities.resources.is_some(), "resources"),
            RequiredCapability::ResourcesSubscribe => {
                let resources = capabilities.resources.as_ref();
                let subscribe = resources.and_then(|resources| resources.subscribe);
                (subscribe == Some(true), "resources.subscribe")
            }
            RequiredCapability::Prompts => (capabilities.prompts.is_some(), "prompts"),
            RequiredCapability::Completions => {
                let declared =
                    capabilities.completions.is_some() || !rules.completions_need_capability;
                (declared, "completions")
            }
            RequiredCapability::Logging => (capabilities.logging.is_some(), "logging"),
            // Checked by the callers that handle both task designs, or declared by this client.
            _ => return Ok(()),
        };
        if declared {
            Ok(())
        } else {
            Err(CallError::CapabilityNotAdvertised {
                method: method.name,
                capability,
            })
        }
    }
}

/// The behavior that differs between revisions, apart from types.
#[derive(Debug)]
pub(crate) struct RevisionRules {
    /// The revision, for downgrading and upgrading payloads.
    pub(crate) revision: Revision,
    /// The `_meta` members of every request, as JSON text without braces; empty if the session stores them.
    pub(crate) common_meta: String,
    /// The value of `MCP-Protocol-Version`, if the revision has that header.
    pub(crate) version_header: Option<HeaderValue>,
    /// Method, name and annotated arguments are repeated in HTTP headers.
    pub(crate) mcp_headers: bool,
    /// Closing the HTTP response cancels the request; otherwise a notification does.
    pub(crate) drop_cancels: bool,
    /// A broken stream can be resumed.
    pub(crate) resumable: bool,
    /// A request has to be sent again as a new request if its response was lost.
    pub(crate) reissue_lost_requests: bool,
    /// The server may keep a session and open a GET stream.
    pub(crate) session: bool,
    /// The server may send requests.
    pub(crate) server_requests_allowed: bool,
    /// A result has a `resultType`.
    pub(crate) has_result_type: bool,
    /// The log level is sent with each request.
    pub(crate) log_level_per_request: bool,
    /// Changes are subscribed to with a listen request; otherwise they are sent without one.
    pub(crate) listen_requests: bool,
    /// Both sides may send `ping`.
    pub(crate) has_ping: bool,
    /// The client notifies the server when the roots change.
    pub(crate) roots_notifications: bool,
    /// The server may reject a call with `URLElicitationRequired`.
    pub(crate) url_elicitation_required: bool,
    /// The design of tasks.
    pub(crate) tasks: TaskDesign,
    /// A result has a cache hint.
    pub(crate) cache_hints: bool,
    /// Tool output must match the output schema.
    pub(crate) validate_output: bool,
    /// The server must declare `completions` to receive completion requests.
    pub(crate) completions_need_capability: bool,
}

/// The design of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskDesign {
    /// The revision does not define tasks.
    None,
    /// The client requests a task; a separate request fetches its result.
    ClientRequested,
    /// The server decides; polling the task returns its result.
    ServerDirected,
}

impl RevisionRules {
    /// Returns the `_meta` members of a stateless request with this client info and these capabilities, as JSON text
    /// without braces.
    pub(crate) fn common_meta_of(
        &self,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> String {
        stateless::common_meta(self.revision, info, capabilities)
    }

    /// Returns whether a request may be cancelled by a notification.
    pub(crate) fn cancellable(&self, method: &str) -> bool {
        // Before negotiation, a server that does not know the method would not know the notification either.
        method != method::INITIALIZE.name && method != method::SERVER_DISCOVER.name
    }
}

/// Stores the eras of servers, so that the next connection does not have to detect them.
///
/// Clone it to share it between clients. An entry is a hint: if it is wrong, the era is detected again.
#[derive(Clone, Default)]
pub struct LifecycleCache(Arc<Mutex<HashMap<String, Era>>>);

impl LifecycleCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the era of a server.
    ///
    /// The key of a server is its origin (`https://example.com`), or its command line.
    pub fn get(&self, server: &str) -> Option<Era> {
        lock(&self.0).get(server).copied()
    }

    /// Stores the era of a server.
    pub fn set(&self, server: impl Into<String>, era: Era) {
        lock(&self.0).insert(server.into(), era);
    }

    /// Removes a server.
    pub fn remove(&self, server: &str) {
        lock(&self.0).remove(server);
    }
}

/// Does not print keys: a command line may contain a secret.
impl fmt::Debug for LifecycleCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecycleCache")
            .field("servers", &lock(&self.0).len())
            .finish()
    }
}

/// Returns the rules of the newest revision, for tests.
#[cfg(test)]
pub(crate) fn modern_rules() -> Arc<RevisionRules> {
    let info = Implementation::new("test", "1");
    Arc::new(stateless::rules(
        Revision::MODERN,
        &info,
        &ClientCapabilities::default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_never_printed() {
        let cache = LifecycleCache::new();
        cache.set("weather-server --key sesame", Era::Modern);

        assert!(!format!("{cache:?}").contains("sesame"));
    }
}
