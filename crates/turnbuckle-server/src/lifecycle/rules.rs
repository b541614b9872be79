//! The differences between revisions, as one table.

use serde::Serialize;
use turnbuckle_protocol::{
    Revision,
    json::{self, JsonError},
    jsonrpc::code,
    method::{Method, MethodDirection, MethodKind},
    revision::VersionedPayload,
};

/// The rules of one revision, where revisions differ.
#[derive(Debug)]
pub(crate) struct RevisionRules {
    revision: Revision,
    /// The way client requests reach the client.
    pub(crate) client_request_mode: ClientRequestMode,
    /// The task model.
    pub(crate) tasks: TaskModel,
    /// Results contain `resultType`, cache hints and the server's identity.
    pub(crate) adds_result_metadata: bool,
    /// The error code for a resource that does not exist.
    pub(crate) resource_not_found: i64,
    /// A missing client capability is a JSON-RPC error of its own, not a tool error.
    pub(crate) missing_capability_is_rpc_error: bool,
    /// Batches (JSON arrays of messages) are allowed.
    pub(crate) supports_batches: bool,
    /// An error response without a known request id contains `"id": null`.
    pub(crate) errors_carry_null_id: bool,
    /// A stream starts with an event that has only an id, as a point to resume from.
    pub(crate) sends_priming_event: bool,
    /// URL elicitations have ids, a required error and a completion notification.
    pub(crate) notifies_url_elicitation_end: bool,
    /// Change notifications wait until the peer has received its first response.
    pub(crate) defers_notifications_until_first_response: bool,
}

/// The way client requests reach the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientRequestMode {
    /// As a request, while the handler waits.
    Direct,
    /// As `input_required`: the handler runs again when the client retries with the response.
    RoundTrip,
}

/// The ways in which a call becomes a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskModel {
    /// Tasks are not supported.
    None,
    /// The client requests a task. It fetches the result separately, and receives client requests while it waits.
    ClientRequested,
    /// The server decides, for clients with the extension. The task contains the result and input requests.
    ServerDirected,
}

impl RevisionRules {
    /// Returns the rules of the stateless revision with this date.
    pub(crate) fn for_stateless_version(date: &str) -> Option<&'static Self> {
        Revision::stateless_from_name(date).map(Self::for_revision)
    }

    /// Returns the rules of the newest legacy revision and of the newest revision.
    pub(crate) fn newest_of_each_era() -> [&'static Self; 2] {
        [Revision::LATEST_LEGACY, Revision::MODERN].map(Self::for_revision)
    }

    /// Returns the rules of a revision.
    pub(crate) fn for_revision(revision: Revision) -> &'static Self {
        &RULES[revision.index()]
    }

    /// Writes a payload in the format of the peer's revision.
    pub(crate) fn write<T: VersionedPayload + Serialize>(&self, value: &mut T, out: &mut Vec<u8>) {
        value.downgrade_to(self.revision);
        serde_json::to_writer(out, value)
            .expect("our own types have string keys and no failing Serialize");
    }

    /// Converts a payload to the format of the peer's revision.
    pub(crate) fn lower<T: VersionedPayload>(&self, value: &mut T) {
        value.downgrade_to(self.revision);
    }

    /// Reads a payload in the format of the peer's revision.
    pub(crate) fn read<T: VersionedPayload + for<'a> serde::Deserialize<'a>>(
        &self,
        text: &str,
    ) -> Result<T, JsonError> {
        let mut value: T = json::from_str(text)?;
        value.upgrade_from(self.revision);
        Ok(value)
    }

    /// Index of the revision, for tables with one entry per revision.
    pub(crate) fn index(&self) -> usize {
        self.revision.index()
    }

    /// Returns whether requests belong to sessions, which start with `initialize`.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.revision.is_stateless()
    }

    /// Returns whether clients of this revision can send a request with this method.
    pub(crate) fn accepts_request(&self, method: &Method) -> bool {
        method.kind == MethodKind::Request
            && method.direction(self.revision) == Some(MethodDirection::ToServer)
    }

    /// The revision, for a relay.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// The name of the revision.
    pub(crate) fn version(&self) -> &'static str {
        self.revision.as_str()
    }

    /// Returns whether JSON-RPC errors have HTTP statuses of their own.
    pub(crate) fn has_error_statuses(&self) -> bool {
        self.adds_result_metadata
    }

    /// Returns the HTTP status of a JSON-RPC error.
    pub(crate) fn status(&self, error: i64) -> u16 {
        match error {
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION
                if self.adds_result_metadata =>
            {
                400
            }
            code::METHOD_NOT_FOUND if self.adds_result_metadata => 404,
            _ => 200,
        }
    }
}

static RULES: [RevisionRules; Revision::ALL.len()] = {
    const LEGACY: RevisionRules = RevisionRules {
        revision: Revision::V2025_11_25,
        client_request_mode: ClientRequestMode::Direct,
        tasks: TaskModel::None,
        adds_result_metadata: false,
        resource_not_found: code::RESOURCE_NOT_FOUND,
        missing_capability_is_rpc_error: false,
        supports_batches: false,
        errors_carry_null_id: true,
        sends_priming_event: false,
        notifies_url_elicitation_end: false,
        defers_notifications_until_first_response: false,
    };
    const STATELESS: RevisionRules = RevisionRules {
        revision: Revision::V2026_07_28,
        client_request_mode: ClientRequestMode::RoundTrip,
        tasks: TaskModel::ServerDirected,
        adds_result_metadata: true,
        resource_not_found: code::INVALID_PARAMS,
        missing_capability_is_rpc_error: true,
        supports_batches: false,
        errors_carry_null_id: false,
        sends_priming_event: false,
        notifies_url_elicitation_end: false,
        defers_notifications_until_first_response: false,
    };
    // In the order of `Revision::ALL`.
    [
        RevisionRules {
            revision: Revision::V2024_10_07,
            defers_notifications_until_first_response: true,
            ..LEGACY
        },
        RevisionRules {
            revision: Revision::V2024_11_05,
            defers_notifications_until_first_response: true,
            ..LEGACY
        },
        RevisionRules {
            revision: Revision::V2025_03_26,
            supports_batches: true,
            ..LEGACY
        },
        RevisionRules {
            revision: Revision::V2025_06_18,
            ..LEGACY
        },
        RevisionRules {
            revision: Revision::V2025_11_25,
            errors_carry_null_id: false,
            sends_priming_event: true,
            tasks: TaskModel::ClientRequested,
            notifies_url_elicitation_end: true,
            ..LEGACY
        },
        RevisionRules {
            revision: Revision::V2026_07_28,
            ..STATELESS
        },
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_has_its_rules() {
        for revision in Revision::ALL {
            let rules = RevisionRules::for_revision(revision);
            assert_eq!(rules.revision, revision);
            assert_eq!(rules.has_sessions(), !revision.is_stateless());
            let by_name = RevisionRules::for_stateless_version(revision.as_str());
            assert_eq!(by_name.is_some(), revision.is_stateless(), "{revision}");
        }
    }
}
