//! The revisions of both sides of a call, and what follows from them. The only module that asks for the era.

use turnbuckle_client::{Era, ServerInfo};
use turnbuckle_protocol::Revision;

/// The revisions of the client and the server of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RevisionPair {
    pub(crate) downstream: Revision,
    pub(crate) upstream: Revision,
}

/// How client requests get from the server to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientRequestPath {
    /// As requests on both sides.
    Requests,
    /// In results on both sides: `input_required` is passed on.
    Results,
    /// The server sends requests, the client gets results: the call is suspended.
    Suspend,
    /// The server returns results, the client gets requests: the call is repeated with their responses.
    RoundTrips,
}

impl RevisionPair {
    /// Returns the revisions for a result that the gateway writes itself, without the members of the modern era.
    pub(crate) fn of_own_result(downstream: Revision) -> Self {
        Self {
            downstream,
            upstream: downstream.min(Revision::LATEST_LEGACY),
        }
    }

    /// Returns the revisions for a value of the newest types that the gateway writes itself.
    pub(crate) fn from_newest(downstream: Revision) -> Self {
        Self {
            downstream,
            upstream: Revision::MODERN,
        }
    }

    pub(crate) fn client_request_path(self) -> ClientRequestPath {
        match (is_stateless(self.downstream), is_stateless(self.upstream)) {
            (false, false) => ClientRequestPath::Requests,
            (true, true) => ClientRequestPath::Results,
            (true, false) => ClientRequestPath::Suspend,
            (false, true) => ClientRequestPath::RoundTrips,
        }
    }

    /// Returns whether results contain something that the client's revision lacks.
    pub(crate) fn needs_downgrade(self) -> bool {
        self.downstream < self.upstream
    }

    /// Returns whether results have to get the members that every result of the client's revision has.
    pub(crate) fn adds_result_members(self) -> bool {
        is_stateless(self.downstream) && !is_stateless(self.upstream)
    }

    /// Returns whether client and server use the modern era, so that results name the server.
    pub(crate) fn are_both_modern(self) -> bool {
        is_stateless(self.downstream) && is_stateless(self.upstream)
    }
}

/// How a client that can open URLs learns that one has to be opened before its request is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlRequestPath {
    /// By the result `input_required`.
    Result,
    /// By error -32042.
    Error,
}

/// Returns how clients of a revision learn that a URL has to be opened, if the revision has such a way.
pub(crate) fn url_request_path(downstream: Revision) -> Option<UrlRequestPath> {
    if is_stateless(downstream) {
        Some(UrlRequestPath::Result)
    } else {
        (downstream >= Revision::V2025_11_25).then_some(UrlRequestPath::Error)
    }
}

/// Stands for the revision of a server that sends requests before the handshake has ended, which only legacy ones do.
pub(crate) const HANDSHAKE_REVISION: Revision = Revision::LATEST_LEGACY;

/// The revision of definitions that the gateway writes itself; they have nothing that newer revisions add.
pub(crate) const OWN_DEFINITIONS_REVISION: Revision = Revision::LATEST_LEGACY;

/// The design of tasks that a revision has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskDesign {
    /// The client requests that a call becomes a task (2025-11-25).
    ClientRequested,
    /// The server decides which calls become tasks (2026-07-28).
    ServerDirected,
}

/// Returns the design of tasks of a revision, if it has tasks.
pub(crate) fn task_design(revision: Revision) -> Option<TaskDesign> {
    if revision.is_stateless() {
        Some(TaskDesign::ServerDirected)
    } else {
        (revision >= Revision::V2025_11_25).then_some(TaskDesign::ClientRequested)
    }
}

/// Returns whether requests of this revision are independent of each other.
pub(crate) fn is_stateless(revision: Revision) -> bool {
    revision.is_stateless()
}

/// Returns whether a server keeps no session, so that callers can share a connection to it.
pub(crate) fn is_stateless_server(server: &ServerInfo) -> bool {
    server.era == Era::Modern
}
