//! How the two sides agree on a revision, and what follows from it.
//!
//! The only room that compares revisions. Everyone else reads a field of [`Rules`].

mod detect;
mod memory;
mod session;
mod stateless;
#[cfg(test)]
pub(crate) mod testing;

use std::sync::Arc;

use http::HeaderValue;
use turnbuckle_protocol::Revision;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::ServerCapabilities;

pub(crate) use detect::{Asking, agree, only_newer};
pub use memory::EraMemory;

use crate::EraChoice;
use crate::server::Server;

/// Whether a server remembers a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// It does: 2025-11-25 and before.
    Legacy,
    /// Every request stands on its own: 2026-07-28.
    Modern,
}

/// What both sides agreed upon.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) rules: Arc<Rules>,
    pub(crate) server: Arc<Server>,
}

impl Agreed {
    /// What holds before anything is agreed: only servers with a handshake ask then, if only whether we are there.
    pub(crate) fn nothing_yet(choice: EraChoice) -> Self {
        let rules = Rules {
            server_asks: choice != EraChoice::Modern,
            roots_change: false,
            ..session::opening_rules()
        };
        Self {
            server: Arc::new(Server {
                info: None,
                capabilities: ServerCapabilities::default(),
                instructions: None,
                revision: rules.revision,
                era: Era::Legacy,
                supported: Vec::new(),
            }),
            rules: Arc::new(rules),
        }
    }
}

/// All that differs between revisions once types are left aside.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The revision, for lowering and raising payloads.
    pub(crate) revision: Revision,
    /// What `_meta` of every request holds, as JSON text without braces; empty where a session remembers it.
    pub(crate) stamp: String,
    /// What `MCP-Protocol-Version` says, where there is such a header.
    pub(crate) version_header: Option<HeaderValue>,
    /// Method, name and marked arguments are repeated in headers.
    pub(crate) mirrored: bool,
    /// Dropping the response on HTTP is the cancellation; otherwise a notification is.
    pub(crate) drop_cancels: bool,
    /// A stream that breaks can be taken up again where it broke.
    pub(crate) resumable: bool,
    /// A request whose response was lost has to be sent again as a new one.
    pub(crate) reissues: bool,
    /// The server may open a stream of its own, and ends a session when it is told to.
    pub(crate) session: bool,
    /// The server may ask by requests of its own.
    pub(crate) server_asks: bool,
    /// A result says of which kind it is.
    pub(crate) result_type: bool,
    /// The level of log messages is said with each request.
    pub(crate) log_level_per_request: bool,
    /// Changes are listened for by a request; otherwise they simply come.
    pub(crate) listens: bool,
    /// Both sides may ask whether the other is there.
    pub(crate) pings: bool,
    /// The server wants to be told when the roots change.
    pub(crate) roots_change: bool,
    /// The server may refuse a call until the user has visited some URLs.
    pub(crate) visits_first: bool,
    /// How a call becomes a task.
    pub(crate) tasks: TaskDesign,
    /// An answer says how long it may be used again.
    pub(crate) caches: bool,
    /// What a tool declares about its output has to hold.
    pub(crate) promises: bool,
    /// What a server has to declare before it is asked for completions.
    pub(crate) completions_declared: bool,
}

/// How a call becomes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskDesign {
    /// There are no tasks.
    None,
    /// The client asks for one; its result is fetched by a request of its own.
    Asked,
    /// The server decides; looking at a task brings its result.
    Offered,
}

impl Rules {
    /// Says whether a request may be cancelled by a notification.
    pub(crate) fn cancellable(&self, method: &str) -> bool {
        // What is asked before anything is agreed: who does not know the question would not know this either.
        method != method::INITIALIZE.name && method != method::SERVER_DISCOVER.name
    }
}
