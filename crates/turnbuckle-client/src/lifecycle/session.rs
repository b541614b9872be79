//! The session lifecycle, 2025-11-25 and before: an `initialize` handshake.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use turnbuckle_protocol::{
    Revision, RpcError, VersionedPayload, json,
    jsonrpc::code,
    method,
    types::{InitializeParams, InitializeResult, UnsupportedVersionData},
};

use crate::{
    error::ConnectError,
    lifecycle::{
        Era, Negotiated, RevisionRules, TaskDesign,
        detect::{LifecycleProbe, read},
    },
    target::ServerInfo,
};

const INITIALIZE: &str = method::INITIALIZE.name;

/// The newest revision with a handshake.
const NEWEST: Revision = Revision::LATEST_LEGACY;

/// Returns the rules of a revision with a handshake.
fn rules(revision: Revision) -> RevisionRules {
    RevisionRules {
        revision,
        common_meta: String::new(),
        version_header: (revision >= Revision::V2025_06_18)
            .then(|| HeaderValue::from_static(revision.as_str())),
        mcp_headers: false,
        drop_cancels: false,
        resumable: revision >= Revision::V2025_03_26,
        reissue_lost_requests: false,
        session: true,
        server_requests_allowed: true,
        has_result_type: false,
        log_level_per_request: false,
        listen_requests: false,
        has_ping: true,
        cache_hints: false,
        validate_output: revision >= Revision::V2025_06_18,
        roots_notifications: true,
        url_elicitation_required: revision >= Revision::V2025_11_25,
        tasks: if revision >= Revision::V2025_11_25 {
            TaskDesign::ClientRequested
        } else {
            TaskDesign::None
        },
        completions_need_capability: revision >= Revision::V2025_03_26,
    }
}

/// Returns the rules before negotiation: an `initialize` request has its version only in its parameters.
pub(super) fn opening_rules() -> RevisionRules {
    RevisionRules {
        version_header: None,
        ..rules(NEWEST)
    }
}

/// Performs the handshake.
pub(super) async fn open(probe: &LifecycleProbe<'_>) -> Result<Arc<Negotiated>, ConnectError> {
    let (source, status) = match initialize(probe, NEWEST).await {
        Err(ConnectError::Rejected { source, status, .. }) => (source, status),
        outcome => return outcome,
    };
    let versions = named_versions(&source);
    match newest_handshake(&versions) {
        Some(NEWEST) => Err(rejected(source, status)),
        Some(revision) => initialize(probe, revision).await,
        None if versions.is_empty() => Err(rejected(source, status)),
        None => Err(ConnectError::NoCommonRevision { server: versions }),
    }
}

/// Proposes a revision; the server accepts it or names another one.
pub(super) async fn initialize(
    probe: &LifecycleProbe<'_>,
    proposed: Revision,
) -> Result<Arc<Negotiated>, ConnectError> {
    let mut params = InitializeParams::new(
        proposed.as_str(),
        probe.capabilities.clone(),
        probe.info.clone(),
    );
    params.downgrade_to(proposed);
    let response = probe
        .send(&method::INITIALIZE, &params, Arc::new(opening_rules()))
        .await?;
    let status = response.http.map(|metadata| metadata.status);
    let result = response.outcome.map_err(|error| rejected(error, status))?;
    let result: InitializeResult = read(INITIALIZE, &result.json)?;
    // Stored before the notification is sent: the server may send requests as soon as it receives it.
    let negotiated = probe.store_negotiated(negotiated(result)?);
    probe.notify_initialized(&negotiated.rules).await?;
    Ok(negotiated)
}

fn negotiated(mut result: InitializeResult) -> Result<Negotiated, ConnectError> {
    let revision = result.protocol_version.parse::<Revision>().ok();
    let Some(revision) = revision.filter(|revision| !revision.is_stateless()) else {
        return Err(ConnectError::NoCommonRevision {
            server: vec![result.protocol_version],
        });
    };
    result.upgrade_from(revision);
    Ok(Negotiated {
        rules: Arc::new(rules(revision)),
        server: Arc::new(ServerInfo {
            info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
            revision,
            era: Era::Legacy,
            supported_versions: vec![result.protocol_version],
            meta: result.meta,
        }),
    })
}

fn rejected(source: impl Into<Box<RpcError>>, status: Option<StatusCode>) -> ConnectError {
    ConnectError::Rejected {
        method: INITIALIZE,
        source: source.into(),
        status,
    }
}

/// Returns the revisions that the server names when it rejects one.
fn named_versions(error: &RpcError) -> Vec<String> {
    if !matches!(error.code, code::INVALID_PARAMS | code::UNSUPPORTED_VERSION) {
        return Vec::new();
    }
    let data = error.data.clone().unwrap_or_default();
    json::from_value::<UnsupportedVersionData>(&data)
        .map(|data| data.supported)
        .unwrap_or_default()
}

/// Returns the newest revision with a handshake that both sides support.
pub(super) fn newest_handshake(supported: &[String]) -> Option<Revision> {
    let revisions = supported.iter().filter_map(|name| name.parse().ok());
    revisions
        .filter(|revision: &Revision| !revision.is_stateless())
        .max()
}
