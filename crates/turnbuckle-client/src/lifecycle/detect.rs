//! Detects the era of a server: sends a request of the newest revision, and classifies the response.

use std::{mem::take, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::StatusCode;
use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_protocol::{
    Revision, RpcError, json,
    jsonrpc::code,
    method::{self, Method},
    types::{
        ClientCapabilities, DiscoverResult, EmptyParams, Implementation, UnsupportedVersionData,
    },
};

use crate::{
    builder::LifecycleMode,
    client::{
        RequestIds, is_lost_response,
        timeout::{TimeLimitElapsed, within},
    },
    error::{ConnectError, TransportError},
    inbound::{
        InboundRouter,
        message::{RawJson, RawResponse},
    },
    lifecycle::{
        Era, Negotiated, RevisionRules,
        session::{self, newest_handshake},
        stateless,
    },
    transport::{OutgoingRequest, Transport, encode},
};

const DISCOVER: &str = method::SERVER_DISCOVER.name;

/// The state that is needed to send requests before negotiation.
pub(crate) struct LifecycleProbe<'c> {
    pub(crate) transport: &'c Transport,
    pub(crate) router: &'c Arc<InboundRouter>,
    pub(crate) ids: &'c RequestIds,
    pub(crate) info: &'c Implementation,
    pub(crate) capabilities: &'c ClientCapabilities,
    /// The timeout of a request.
    pub(crate) timeout: Duration,
    /// Receives the negotiated state.
    pub(crate) negotiated: &'c ArcSwap<Negotiated>,
}

/// Negotiates a revision with a server.
pub(crate) async fn negotiate(
    probe: &LifecycleProbe<'_>,
    mode: LifecycleMode,
    remembered: Option<Era>,
) -> Result<Arc<Negotiated>, ConnectError> {
    match (mode, remembered) {
        (LifecycleMode::Legacy, _) => session::open(probe).await,
        (LifecycleMode::Auto, Some(Era::Legacy)) => match session::open(probe).await {
            // The cached era is wrong, so it is detected again.
            Err(error) if rejects_initialize(&error) => detect(probe, mode).await,
            outcome => outcome,
        },
        _ => detect(probe, mode).await,
    }
}

/// The result of the first request.
#[derive(Debug)]
enum ProbeResult {
    /// The server responded as 2026-07-28 defines.
    Modern(Box<DiscoverResult>),
    /// The server is a modern one, but does not support this revision; it supports these.
    UnsupportedVersion(Vec<String>),
    /// The server is a modern one, and returned an error.
    Rejected(RpcError, Option<StatusCode>),
    /// The server does not know the method.
    Legacy,
    /// The server returned an HTTP status as legacy servers do. It may also not be an MCP server.
    HttpStatus(TransportError),
    /// The server did not respond: it is a legacy server, or starts slowly.
    TimedOut,
}

async fn detect(
    probe: &LifecycleProbe<'_>,
    mode: LifecycleMode,
) -> Result<Arc<Negotiated>, ConnectError> {
    let mut rules = Arc::new(probe.stateless_rules(Revision::MODERN));
    let mut result = send_probe(probe, &rules, mode).await?;
    if let ProbeResult::TimedOut = result {
        let error = match session::open(probe).await {
            Err(error) if rejects_initialize(&error) => error,
            outcome => return outcome,
        };
        // The server responds now, and does not know `initialize`.
        result = match send_probe(probe, &rules, mode).await? {
            ProbeResult::Legacy | ProbeResult::HttpStatus(_) | ProbeResult::TimedOut => {
                return Err(error);
            }
            result => result,
        };
    }
    if let ProbeResult::UnsupportedVersion(versions) = &result {
        // The newest revision of both, which may be the same: a server that rejects a revision that it supports gets
        // one more request.
        if let Some(revision) = stateless::newest_common(versions) {
            rules = Arc::new(probe.stateless_rules(revision));
            result = send_probe(probe, &rules, mode).await?;
        }
    }
    match result {
        ProbeResult::Modern(result) => modern(probe, rules, mode, *result).await,
        ProbeResult::UnsupportedVersion(versions) => match newest_handshake(&versions) {
            Some(revision) if mode == LifecycleMode::Auto => {
                session::initialize(probe, revision).await
            }
            _ => Err(ConnectError::NoCommonRevision { server: versions }),
        },
        ProbeResult::Rejected(source, status) => Err(ConnectError::Rejected {
            method: DISCOVER,
            source: Box::new(source),
            status,
        }),
        ProbeResult::Legacy if mode == LifecycleMode::Modern => {
            Err(ConnectError::NoCommonRevision {
                server: vec!["a revision with a handshake".to_owned()],
            })
        }
        ProbeResult::HttpStatus(error) if mode == LifecycleMode::Modern => {
            Err(ConnectError::Unreachable(error))
        }
        ProbeResult::Legacy | ProbeResult::HttpStatus(_) | ProbeResult::TimedOut => {
            session::open(probe).await
        }
    }
}

async fn modern(
    probe: &LifecycleProbe<'_>,
    rules: Arc<RevisionRules>,
    mode: LifecycleMode,
    result: DiscoverResult,
) -> Result<Arc<Negotiated>, ConnectError> {
    let versions = &result.supported_versions;
    let from = rules.revision;
    let rules = match stateless::newest_common(versions) {
        Some(revision) if revision == from => rules,
        Some(revision) => Arc::new(probe.stateless_rules(revision)),
        None => {
            return match newest_handshake(versions) {
                Some(revision) if mode == LifecycleMode::Auto => {
                    session::initialize(probe, revision).await
                }
                _ => Err(ConnectError::NoCommonRevision {
                    server: result.supported_versions,
                }),
            };
        }
    };
    let described = stateless::described(result, from, rules.revision);
    Ok(probe.store_negotiated(Negotiated {
        rules,
        server: Arc::new(described),
    }))
}

/// Sends `server/discover`.
async fn send_probe(
    probe: &LifecycleProbe<'_>,
    rules: &Arc<RevisionRules>,
    mode: LifecycleMode,
) -> Result<ProbeResult, ConnectError> {
    // A timeout on HTTP does not indicate the era; elsewhere, legacy servers may ignore unknown methods.
    let timeout_means_legacy = mode == LifecycleMode::Auto && !probe.transport.is_http();
    let limit = if timeout_means_legacy {
        probe.router.limits.probe_timeout
    } else {
        probe.timeout
    };
    let mut response = discover(probe, rules, limit).await?;
    let is_lost = |error| probe.transport.is_http() && is_lost_response(error);
    // The request is free of side effects, so it can be sent again under another id, once.
    if let Ok(Err(error)) = &response
        && is_lost(error)
    {
        response = discover(probe, rules, limit).await?;
    }
    match response {
        Ok(Ok(response)) => Ok(classify(&response, probe.transport.is_http())),
        Ok(Err(TransportError::ErrorResponse(error_response)))
            if indicates_legacy(error_response.status) =>
        {
            Ok(ProbeResult::HttpStatus(TransportError::ErrorResponse(
                error_response,
            )))
        }
        // An invalid response comes from a server that does not know the method.
        Ok(Err(TransportError::InvalidResponse { .. })) => Ok(ProbeResult::Legacy),
        Ok(Err(error)) => Err(handshake_error(DISCOVER, error)),
        Err(_) if timeout_means_legacy => Ok(ProbeResult::TimedOut),
        Err(_) => Err(ConnectError::TimedOut {
            method: DISCOVER,
            limit,
        }),
    }
}

async fn discover(
    probe: &LifecycleProbe<'_>,
    rules: &Arc<RevisionRules>,
    limit: Duration,
) -> Result<Result<Result<RawResponse, TransportError>, TimeLimitElapsed>, ConnectError> {
    let params = EmptyParams::default();
    let mut request = probe.encode(&method::SERVER_DISCOVER, &params, Arc::clone(rules))?;
    let body = take(&mut request.body);
    let response = probe.transport.send_request(&request, body, probe.router);
    Ok(within(limit, request.auth_wait.as_deref(), response).await)
}

fn classify(response: &RawResponse, http: bool) -> ProbeResult {
    let status = response.http.as_ref().map(|metadata| metadata.status);
    match &response.outcome {
        Ok(result) => match json::from_str(result.json.as_str()) {
            Ok(result) => ProbeResult::Modern(Box::new(result)),
            Err(_) => ProbeResult::Legacy,
        },
        Err(error) if error.code == code::UNSUPPORTED_VERSION => {
            ProbeResult::UnsupportedVersion(named_versions(error))
        }
        Err(error) if is_modern_error(error) => ProbeResult::Rejected(error.clone(), status),
        // Neither an authorization error nor a server failure indicates the era.
        Err(error)
            if http && !status.is_none_or(indicates_legacy) && status != Some(StatusCode::OK) =>
        {
            ProbeResult::Rejected(error.clone(), status)
        }
        Err(_) => ProbeResult::Legacy,
    }
}

fn named_versions(error: &RpcError) -> Vec<String> {
    let data = error.data.clone().unwrap_or_default();
    json::from_value::<UnsupportedVersionData>(&data)
        .map(|data| data.supported)
        .unwrap_or_default()
}

/// Returns whether only a server of 2026-07-28 sends this error.
pub(crate) fn is_modern_error(error: &RpcError) -> bool {
    matches!(
        error.code,
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION
    )
}

/// Returns whether `initialize` was rejected as a modern server may do.
fn rejects_initialize(error: &ConnectError) -> bool {
    match error {
        ConnectError::Rejected { .. } | ConnectError::NoCommonRevision { .. } => true,
        ConnectError::Unreachable(TransportError::ErrorResponse(error_response)) => {
            indicates_legacy(error_response.status)
        }
        _ => false,
    }
}

/// Returns whether a legacy server may return this status for a request that it does not know.
fn indicates_legacy(status: StatusCode) -> bool {
    status.is_client_error()
        && !matches!(
            status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
        )
}

impl LifecycleProbe<'_> {
    /// Sends a request and waits for its response, until the timeout.
    pub(crate) async fn send(
        &self,
        method: &'static Method,
        params: &impl Serialize,
        rules: Arc<RevisionRules>,
    ) -> Result<RawResponse, ConnectError> {
        let mut request = self.encode(method, params, rules)?;
        let (limit, body) = (self.timeout, take(&mut request.body));
        let response = self.transport.send_request(&request, body, self.router);
        match within(limit, request.auth_wait.as_deref(), response).await {
            Ok(response) => response.map_err(|error| handshake_error(method.name, error)),
            Err(_) => Err(ConnectError::TimedOut {
                method: method.name,
                limit,
            }),
        }
    }

    /// Returns the rules of a stateless revision.
    fn stateless_rules(&self, revision: Revision) -> RevisionRules {
        stateless::rules(revision, self.info, self.capabilities)
    }

    /// Stores the negotiated state.
    pub(super) fn store_negotiated(&self, negotiated: Negotiated) -> Arc<Negotiated> {
        let negotiated = Arc::new(negotiated);
        self.negotiated.store(Arc::clone(&negotiated));
        negotiated
    }

    /// Sends `notifications/initialized`.
    pub(super) async fn notify_initialized(
        &self,
        rules: &RevisionRules,
    ) -> Result<(), ConnectError> {
        let mut message = Vec::new();
        let method = method::INITIALIZED.name;
        turnbuckle_protocol::jsonrpc::write_notification(&mut message, method, &())
            .expect("serializing a constant does not fail");
        let headers = encode::version_header(rules);
        self.transport.send(message, headers, self.router).await?;
        Ok(())
    }

    /// Encodes a request.
    fn encode(
        &self,
        method: &'static Method,
        params: &impl Serialize,
        rules: Arc<RevisionRules>,
    ) -> Result<OutgoingRequest<'static>, ConnectError> {
        let mut request = OutgoingRequest::new(method, rules, self.transport.auth_wait());
        request.id = self.ids.next();
        let encoded = encode::fill(&mut request, params, None, None);
        encoded.map_err(|error| ConnectError::InvalidResponse {
            method: method.name,
            reason: error.to_string(),
        })?;
        Ok(request)
    }
}

fn handshake_error(method: &'static str, error: TransportError) -> ConnectError {
    match error {
        TransportError::WrongIdType { .. } => ConnectError::InvalidResponse {
            method,
            reason: error.to_string(),
        },
        error => error.into(),
    }
}

/// Parses the result of a handshake request.
pub(super) fn read<T: DeserializeOwned>(
    method: &'static str,
    result: &RawJson,
) -> Result<T, ConnectError> {
    json::from_str(result.as_str()).map_err(|error| ConnectError::InvalidResponse {
        method,
        reason: error.to_string(),
    })
}
