//! Sessions: `initialize`, and requests that rely on what it negotiated.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use turnbuckle_protocol::{
    Principal, RequestId, Revision, RpcError,
    jsonrpc::{MalformedMessage, Message, Notification, Request},
    meta::RequestMeta,
    method::{Method, MethodDirection, MethodKind},
    revision::VersionedPayload,
    types::{
        CancelledParams, ClientCapabilities, Implementation, InitializeParams, InitializeResult,
        LogLevel, ProgressParams, SetLevelParams, SubscribeParams, TaskRequests, TasksCapability,
    },
};
use turnbuckle_store::{ClientProfile, ServerChange, SessionId, SessionRecord, SessionUpdate};

use super::{
    RequestOrigin, RevisionRules, TaskModel, TransportInfo,
    runtime::SessionRuntime,
    stateless::{unsupported_version, version_required},
};
use crate::{
    Server,
    catalog::{
        scopes::RequestDenied,
        subscriptions::{EncodedChange, is_subscribed},
    },
    input,
    middleware::SessionKey,
    request::{
        DispatchOutcome, RequestContext, RunningRequest, error, response::ResponseWriter, span,
    },
    server::relay::RelayedNotification,
    tasks::{self, TaskOwner},
};

/// The minimum level of log messages before the client sets one.
const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Info;

/// Handles `initialize` and returns the session record.
pub(crate) fn initialize(
    server: &Server,
    request: &Request<'_>,
    transport_info: TransportInfo,
) -> Result<(SessionRecord, RunningRequest), RpcError> {
    let (mut params, naming) = parse_initialize(server, request)?;
    if !server.era_restriction().has_sessions() {
        return Err(unsupported_version(server, &params.protocol_version));
    }
    server.check_available()?;
    let revision = negotiate(&params.protocol_version);
    // Drops capabilities that the negotiated revision does not have.
    params.upgrade_from(revision);
    let client = ClientProfile {
        info: match naming {
            ClientNaming::Named => Some(params.client_info),
            ClientNaming::Unnamed => None,
        },
        capabilities: params.capabilities,
    };
    let principal = transport_info.principal.as_deref().cloned();
    let record = SessionRecord::new(principal, revision, Arc::new(client));
    let mut capabilities = server.capabilities(rules(&record));
    let listed = transport_info.principal.is_some() || !transport_info.is_sessionless;
    if server.catalog().supports_tasks {
        capabilities.tasks = Some(tasks_capability(listed));
    } else if let Some(tasks) = capabilities.tasks.as_mut().filter(|_| !listed) {
        tasks.list = None;
    }
    let meta = RequestMeta::default();
    let origin = request_origin(&record, &meta, Arc::default(), transport_info);
    let span = span::for_request(server, request, &origin);
    let call = RequestContext::for_request(server, request, origin);
    server.start_providers();
    let mut result = InitializeResult::new(revision.as_str(), capabilities, server.info().clone());
    result.instructions = server.instructions_text();
    result.meta = server.relay_meta();
    let outcome =
        Ok(ResponseWriter::new(&call).with_meta(&mut result, |result| &mut result.meta, None));
    let running_request = RunningRequest::new(call, DispatchOutcome::Ready(outcome));
    Ok((record, running_request.in_span(span)))
}

/// Parses `initialize`. A lenient server accepts it without `clientInfo`.
///
/// Examples in early documentation omitted it, and some clients copied them.
fn parse_initialize(
    server: &Server,
    request: &Request<'_>,
) -> Result<(InitializeParams, ClientNaming), RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeWithoutInfo {
        protocol_version: String,
        capabilities: ClientCapabilities,
    }
    if !server.is_lenient() || request.params.get("clientInfo").is_some() {
        return Ok((request.params.parse()?, ClientNaming::Named));
    }
    let client = request.params.parse::<InitializeWithoutInfo>()?;
    let unnamed = Implementation::new("", "");
    let params = InitializeParams::new(client.protocol_version, client.capabilities, unnamed);
    Ok((params, ClientNaming::Unnamed))
}

/// The presence of `clientInfo` in `initialize`.
enum ClientNaming {
    Named,
    Unnamed,
}

/// The capability to call tools as tasks. Listing requires that callers can be distinguished.
fn tasks_capability(listed: bool) -> TasksCapability {
    let mut tools = serde_json::Map::new();
    tools.insert("call".to_owned(), json!({}));
    let requests = TaskRequests::default().tools(tools);
    let mut capability = TasksCapability::default().requests(requests);
    capability.cancel = Some(Default::default());
    capability.list = listed.then(Default::default);
    capability
}

/// Returns the negotiated revision: the requested one if it has sessions, else the newest that has.
fn negotiate(requested: &str) -> Revision {
    match requested.parse() {
        Ok(revision) if !Revision::is_stateless(revision) => revision,
        _ => Revision::LATEST_LEGACY,
    }
}

/// Returns the rules of a session.
pub(crate) fn rules(record: &SessionRecord) -> &'static RevisionRules {
    RevisionRules::for_revision(record.revision)
}

/// Checks the version header of a request against the negotiated revision.
pub(crate) fn check_version(
    record: &SessionRecord,
    version_header: Option<&str>,
) -> Result<(), RpcError> {
    match version_header {
        Some(version) if version != record.revision.as_str() => {
            Err(RpcError::invalid_request(format!(
                "`MCP-Protocol-Version` says {version:?}, but this session negotiated {}",
                record.revision
            )))
        }
        _ => Ok(()),
    }
}

/// Creates a record for a peer without a session. Its revision comes from the header, or from its absence.
pub(crate) fn sessionless_record(
    server: &Server,
    version_header: Option<&str>,
    principal: Option<Principal>,
) -> Result<SessionRecord, RpcError> {
    let has_sessions = server.era_restriction().has_sessions();
    let revision = match version_header.map(|version| (version, version.parse())) {
        None if !has_sessions => return Err(version_required()),
        None => Revision::V2025_03_26,
        Some((_, Ok(revision))) if has_sessions && !Revision::is_stateless(revision) => revision,
        Some((version, _)) => return Err(unsupported_version(server, version)),
    };
    // Not initialized, so client requests are not sent.
    Ok(SessionRecord::new(
        principal,
        revision,
        ClientProfile::default(),
    ))
}

/// How a request of a session is handled.
pub(crate) enum SessionRoute {
    /// Dispatch handles the method.
    Dispatch,
    /// Dispatch handles the method under its correct name, which some clients misspell.
    DispatchAs(&'static str),
    /// The relay handles the method, once the update is stored.
    Relay(Option<SessionUpdate>),
    /// The result is empty, once the update is stored.
    Empty(Option<SessionUpdate>),
    /// The request is denied.
    Denied(RequestDenied),
    /// The revision of the session does not have the method.
    UnknownMethod,
}

/// Selects the handling of a request in a session.
// Inlined, so that the route is never moved in memory.
#[inline(always)]
pub(crate) fn route(
    server: &Server,
    record: &SessionRecord,
    request: &Request<'_>,
    origin: &RequestOrigin,
) -> SessionRoute {
    match handle_session_method(server, request, origin) {
        Some(Ok(update)) if server.relayed_to(&request.method).is_some() => {
            SessionRoute::Relay(update)
        }
        Some(Ok(update)) => SessionRoute::Empty(update),
        Some(Err(denied)) => SessionRoute::Denied(denied),
        None if server.is_lenient() && request.method == "completions/complete" => {
            SessionRoute::DispatchAs("completion/complete")
        }
        None if is_client_method(&request.method, record.revision)
            || server
                .extension_method(&request.method, origin.rules)
                .is_some()
            || is_relayed_extension(server, &request.method) =>
        {
            SessionRoute::Dispatch
        }
        None => SessionRoute::UnknownMethod,
    }
}

/// Returns whether a relay handles a method that no revision of the protocol has.
fn is_relayed_extension(server: &Server, method: &str) -> bool {
    server.relayed_to(method).is_some() && Method::from_name(method).is_none()
}

/// Returns the origin of a request before `initialize`.
pub(crate) fn origin_before_initialize(transport_info: TransportInfo) -> RequestOrigin {
    let record = SessionRecord::new(None, Revision::LATEST_LEGACY, ClientProfile::default());
    let meta = RequestMeta::default();
    request_origin(&record, &meta, Arc::default(), transport_info)
}

/// Handles the methods that only sessions have.
fn handle_session_method(
    server: &Server,
    request: &Request<'_>,
    origin: &RequestOrigin,
) -> Option<Result<Option<SessionUpdate>, RequestDenied>> {
    let resources = || {
        let advertised = server.has_resources();
        if advertised {
            Ok(())
        } else {
            Err(RequestDenied::from(RpcError::method_not_found(
                &request.method,
            )))
        }
    };
    Some(match &*request.method {
        "ping" => Ok(None),
        "shutdown" if server.is_lenient() => Ok(None),
        "logging/setLevel" => request
            .params
            .parse::<SetLevelParams>()
            .map(|params| Some(SessionUpdate::LogLevel(params.level)))
            .map_err(RequestDenied::from),
        "resources/subscribe" => resources().and_then(|()| {
            let uri = request.params.parse::<SubscribeParams>()?.uri;
            if server.relay_ref().is_some() {
                return Ok(Some(SessionUpdate::Subscribe(uri)));
            }
            let principal = origin.principal.as_deref();
            match server.catalog().find_resource(&uri, principal) {
                Some(resolved) if resolved.exists(&uri) => {
                    resolved.required_scopes().check(origin)?;
                    Ok(Some(SessionUpdate::Subscribe(uri)))
                }
                _ => Err(error::not_found(origin.rules, &uri).into()),
            }
        }),
        "resources/unsubscribe" => resources().and_then(|()| {
            let uri = request.params.parse::<SubscribeParams>()?.uri;
            Ok(Some(SessionUpdate::Unsubscribe(uri)))
        }),
        _ => return None,
    })
}

/// Rejects a batch that contains a disallowed message.
pub(crate) fn check_batch(
    entries: &[Result<Message<'_>, MalformedMessage>],
) -> Result<(), RpcError> {
    for entry in entries {
        let Ok(Message::Request(request)) = entry else {
            continue;
        };
        if request.method == "initialize" {
            return Err(RpcError::invalid_request(
                "`initialize` must not be part of a batch",
            ));
        }
        if super::parse_meta(request).is_ok_and(|meta| meta.protocol_version.is_some()) {
            return Err(RpcError::invalid_request(
                "a request that names its protocol version must not be part of a batch",
            ));
        }
    }
    Ok(())
}

/// What is left to do for a notification.
pub(crate) enum NotificationEffect {
    /// Store an update of the session.
    Update(SessionUpdate),
    /// Cancel a call that does not run here.
    CancelElsewhere(RequestId),
    /// Report progress of a client request to the instance that has sent it.
    ProgressElsewhere(RequestId),
}

/// Handles a notification of a session, or passes it on to the relay. Returns what is left to do, if anything.
pub(crate) fn notify(
    server: &Server,
    session: SessionId,
    notification: &Notification<'_>,
    runtime: Option<&SessionRuntime>,
) -> Option<NotificationEffect> {
    match &*notification.method {
        // Early clients omitted the prefix.
        "notifications/initialized" | "initialized" => {
            // A ping during initialization does not count as the first response.
            if let Some(runtime) = runtime {
                runtime.reset_first_response();
            }
            return Some(NotificationEffect::Update(SessionUpdate::Initialized));
        }
        "notifications/cancelled" => {
            // Malformed cancellations are ignored, as the specification requires.
            if let (Some(runtime), Ok(params)) =
                (runtime, notification.params.parse::<CancelledParams>())
                && let Some(id) = params.request_id
                && !runtime.cancel(&id)
            {
                return Some(NotificationEffect::CancelElsewhere(id));
            }
        }
        "notifications/progress" => {
            if let (Some(runtime), Ok(params)) =
                (runtime, notification.params.parse::<ProgressParams>())
            {
                let token = params.progress_token;
                if runtime.sender_elsewhere(&token).is_some() {
                    return Some(NotificationEffect::ProgressElsewhere(token));
                }
                runtime.progressed(&token);
            }
        }
        method => match server.relay_ref() {
            Some(relay) => relay.on_notification(RelayedNotification {
                session: SessionKey::from_id(&session),
                method,
                params: notification.params.raw(),
            }),
            None => tracing::trace!(method, "ignored notification"),
        },
    }
    None
}

/// Returns the minimum level of log messages for the client of a session.
pub(crate) fn log_level(record: &SessionRecord) -> LogLevel {
    record.log_level.unwrap_or(DEFAULT_LOG_LEVEL)
}

/// Returns whether change notifications must wait on a byte stream: until initialization is complete and, in the oldest
/// revisions, until the first response.
///
/// A peer that opens a GET stream receives notifications regardless of its initialization.
pub(crate) fn defers_notifications(record: &SessionRecord, runtime: &SessionRuntime) -> bool {
    !record.initialized
        || (rules(record).defers_notifications_until_first_response
            && !runtime.had_first_response())
}

/// Returns the notification of a change, if this session should receive it.
pub(crate) fn notification_for(
    server: &Server,
    record: &SessionRecord,
    id: SessionId,
    runtime: &SessionRuntime,
    announcement: &EncodedChange,
) -> Option<Bytes> {
    if !announcement.is_for(id, record.principal.as_ref()) {
        return None;
    }
    let rules = rules(record);
    match &announcement.change {
        ServerChange::Task { task } => {
            let owner = TaskOwner::for_session(record.principal.as_ref(), id);
            let ours = rules.tasks == TaskModel::ClientRequested && *task.owner == *owner.key();
            ours.then(|| tasks::status_notification(task).into())
        }
        ServerChange::ElicitationCompleted { id } => {
            let is_ours = rules.notifies_url_elicitation_end && runtime.url_elicitations.end(id);
            is_ours.then(|| input::elicitation_complete_notification(id).into())
        }
        ServerChange::ResourceUpdated { uri } => {
            let principal = record.principal.as_ref();
            is_subscribed(server, principal, record.subscriptions.iter(), uri)
                .then(|| announcement.message.clone())
        }
        _ => Some(announcement.message.clone()).filter(|message| !message.is_empty()),
    }
}

/// Returns all changes to announce to a session that missed some.
pub(crate) fn all_changes(record: &SessionRecord) -> Vec<ServerChange> {
    let updates = record
        .subscriptions
        .iter()
        .map(|uri| ServerChange::ResourceUpdated {
            uri: uri.as_str().into(),
        });
    [
        ServerChange::ToolsChanged,
        ServerChange::PromptsChanged,
        ServerChange::ResourcesChanged,
    ]
    .into_iter()
    .chain(updates)
    .collect()
}

fn is_client_method(method: &str, revision: Revision) -> bool {
    Method::from_name(method).is_some_and(|method| {
        method.kind == MethodKind::Request
            && matches!(
                method.direction(revision),
                Some(MethodDirection::ToServer | MethodDirection::Both)
            )
    })
}

/// Returns the origin of a request in a session.
pub(crate) fn request_origin(
    record: &SessionRecord,
    meta: &RequestMeta<'_>,
    runtime: Arc<SessionRuntime>,
    transport_info: TransportInfo,
) -> RequestOrigin {
    RequestOrigin {
        rules: rules(record),
        client: record.client.clone(),
        principal: transport_info.principal,
        headers: transport_info.headers,
        peer: transport_info.peer,
        extensions: transport_info.extensions,
        trace: super::trace(meta),
        progress_token: meta.progress_token.clone(),
        log_level: Some(log_level(record)),
        accepts_client_requests: record.initialized,
        runtime: Some(runtime),
        announces_subscription_end: false,
        connection: transport_info.connection,
        session: transport_info.session,
    }
}

/// The JSON-RPC error for a request without a session.
pub(crate) fn session_required(server: &Server) -> RpcError {
    if !server.era_restriction().has_sessions() {
        return version_required();
    }
    RpcError::invalid_request(
        "this request requires a session: send `initialize` first, then its `Mcp-Session-Id`",
    )
    .with_data(json!({ "supported": server.era_restriction().revisions() }))
}
