//! 2025-11-25 and before: a handshake that both sides remember.

use std::sync::Arc;

use http::{HeaderValue, StatusCode};
use turnbuckle_protocol::json;
use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{InitializeParams, InitializeResult, UnsupportedVersionData};
use turnbuckle_protocol::{Revision, RpcError, Versioned};

use super::detect::{Asking, read};
use super::{Agreed, Era, Rules, TaskDesign};
use crate::error::ConnectError;
use crate::server::Server;

const INITIALIZE: &str = method::INITIALIZE.name;

/// The newest revision that has a handshake.
const NEWEST: Revision = Revision::V2025_11_25;

/// Makes the rules of a revision with a handshake.
fn rules(revision: Revision) -> Rules {
    Rules {
        revision,
        stamp: String::new(),
        version_header: (revision >= Revision::V2025_06_18)
            .then(|| HeaderValue::from_static(revision.as_str())),
        mirrored: false,
        drop_cancels: false,
        resumable: revision >= Revision::V2025_03_26,
        reissues: false,
        session: true,
        server_asks: true,
        result_type: false,
        log_level_per_request: false,
        listens: false,
        pings: true,
        caches: false,
        promises: revision >= Revision::V2025_06_18,
        roots_change: true,
        visits_first: revision >= Revision::V2025_11_25,
        tasks: match revision >= Revision::V2025_11_25 {
            true => TaskDesign::Asked,
            false => TaskDesign::None,
        },
        completions_declared: revision >= Revision::V2025_03_26,
    }
}

/// The rules before anything is agreed: a request `initialize` bears no version anywhere but in itself.
pub(super) fn opening_rules() -> Rules {
    Rules {
        version_header: None,
        ..rules(NEWEST)
    }
}

/// Shakes hands.
pub(super) async fn open(asking: &Asking<'_>) -> Result<Arc<Agreed>, ConnectError> {
    let (source, status) = match initialize(asking, NEWEST).await {
        Err(ConnectError::Refused { source, status, .. }) => (source, status),
        outcome => return outcome,
    };
    let named = named_versions(&source);
    match newest_handshake(&named) {
        Some(NEWEST) => Err(refused(source, status)),
        Some(revision) => initialize(asking, revision).await,
        None if named.is_empty() => Err(refused(source, status)),
        None => Err(ConnectError::NoCommonRevision { server: named }),
    }
}

/// Offers a revision; the server accepts it or names another one.
pub(super) async fn initialize(
    asking: &Asking<'_>,
    offered: Revision,
) -> Result<Arc<Agreed>, ConnectError> {
    let mut params = InitializeParams::new(
        offered.as_str(),
        asking.capabilities.clone(),
        asking.info.clone(),
    );
    params.lower(offered);
    let answer = asking
        .ask(INITIALIZE, &params, Arc::new(opening_rules()))
        .await?;
    let status = answer.http.map(|facts| facts.status);
    let result = answer.outcome.map_err(|error| refused(error, status))?;
    let result: InitializeResult = read(INITIALIZE, &result.json)?;
    // First noted, then said: the server may ask as soon as it knows.
    let agreed = asking.settle(agreed(result)?);
    asking.notify_initialized(&agreed.rules).await?;
    Ok(agreed)
}

fn agreed(mut result: InitializeResult) -> Result<Agreed, ConnectError> {
    let revision = result.protocol_version.parse::<Revision>().ok();
    let Some(revision) = revision.filter(|revision| *revision <= NEWEST) else {
        return Err(ConnectError::NoCommonRevision {
            server: vec![result.protocol_version],
        });
    };
    result.raise(revision);
    Ok(Agreed {
        rules: Arc::new(rules(revision)),
        server: Arc::new(Server {
            info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
            revision,
            era: Era::Legacy,
            supported: vec![result.protocol_version],
        }),
    })
}

fn refused(source: impl Into<Box<RpcError>>, status: Option<StatusCode>) -> ConnectError {
    ConnectError::Refused {
        method: INITIALIZE,
        source: source.into(),
        status,
    }
}

/// Returns the revisions that a server names when it refuses one.
fn named_versions(error: &RpcError) -> Vec<String> {
    if !matches!(error.code, code::INVALID_PARAMS | code::UNSUPPORTED_VERSION) {
        return Vec::new();
    }
    let data = error.data.clone().unwrap_or_default();
    json::from_value::<UnsupportedVersionData>(&data)
        .map(|data| data.supported)
        .unwrap_or_default()
}

/// Picks the newest revision with a handshake that both sides speak.
pub(super) fn newest_handshake(supported: &[String]) -> Option<Revision> {
    let known = supported.iter().filter_map(|name| name.parse().ok());
    known.filter(|revision| *revision <= NEWEST).max()
}
