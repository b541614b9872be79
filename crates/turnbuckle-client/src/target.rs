//! The target of a connection, and what the client knows about the server: limits, description, changes.

use std::time::Duration;

use turnbuckle_protocol::{
    Meta, Revision,
    types::{Implementation, ServerCapabilities, tasks::GetTaskResult},
};

use crate::{
    lifecycle::Era,
    transport::{http::HttpTarget, ndjson::NdjsonClient, stdio::ServerCommand, unix::UnixTarget},
};

/// The location of a server, and the transport to reach it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// A pair of byte streams.
    Ndjson(NdjsonClient),
    /// A URL.
    Http(HttpTarget),
    /// A command that starts the server as a child process.
    Command(ServerCommand),
    /// A unix socket.
    Unix(UnixTarget),
}

impl From<NdjsonClient> for Target {
    fn from(lines: NdjsonClient) -> Self {
        Self::Ndjson(lines)
    }
}

impl From<HttpTarget> for Target {
    fn from(http: HttpTarget) -> Self {
        Self::Http(http)
    }
}

impl From<ServerCommand> for Target {
    fn from(child: ServerCommand) -> Self {
        Self::Command(child)
    }
}

impl From<UnixTarget> for Target {
    fn from(unix: UnixTarget) -> Self {
        Self::Unix(unix)
    }
}

/// Limits on what a client accepts from a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Maximum size of a message in bytes. 64 MiB by default.
    pub max_message_bytes: usize,
    /// Maximum number of items of a list. 100,000 by default.
    pub max_list_items: usize,
    /// Maximum number of pages of a list. 10,000 by default.
    pub max_list_pages: usize,
    /// Maximum number of concurrent server requests. 64 by default.
    pub max_server_requests: usize,
    /// Maximum number of cached responses. 256 by default; 0 disables the cache.
    pub max_cached_responses: usize,
    /// Maximum size of all cached responses in bytes. 16 MiB by default.
    pub max_cache_bytes: usize,
    /// Timeout of the first request, after which the client tries the legacy lifecycle. Ten seconds by default. On
    /// transports where a missing response does not indicate a legacy server, such as HTTP, the idle timeout applies
    /// instead.
    pub probe_timeout: Duration,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_message_bytes: 64 * 1024 * 1024,
            max_list_items: 100_000,
            max_list_pages: 10_000,
            max_server_requests: 64,
            max_cached_responses: 256,
            max_cache_bytes: 16 * 1024 * 1024,
            probe_timeout: Duration::from_secs(10),
        }
    }
}

/// The server, as it described itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Its name and version; optional since 2026-07-28.
    pub info: Option<Implementation>,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for a model.
    pub instructions: Option<String>,
    /// The negotiated revision.
    pub revision: Revision,
    /// Its era.
    pub era: Era,
    /// All revisions that it supports; a legacy server names only one.
    pub supported_versions: Vec<String>,
    /// The `_meta` object of its handshake.
    pub meta: Meta,
}

/// A change on the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// A subscribed resource, or a part of it.
    Resource {
        /// The URI of the resource.
        uri: String,
    },
    /// A task.
    Task(Box<GetTaskResult>),
    /// A URL elicitation is complete (2025-11-25).
    ElicitationComplete {
        /// The id of the elicitation.
        elicitation_id: String,
    },
}
