//! The handshake and what follows from it: the session remembers what a modern request says each time.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use turnbuckle_protocol::{
    Principal, RequestId, Revision, RpcError,
    jsonrpc::{Malformed, Message, Notification, Request},
    meta::RequestMeta,
    method::{Direction, Kind, Method},
    revision::Versioned,
    types::{
        CancelledParams, ClientCapabilities, Implementation, InitializeParams, InitializeResult,
        LogLevel, ProgressParams, SetLevelParams, SubscribeParams, TaskRequests, TasksCapability,
    },
};
use turnbuckle_store::{Change, ClientProfile, SessionChange, SessionId, SessionRecord};

use super::{Arrival, Caller, Rules, TaskDesign, live::Live};
use crate::{
    Server,
    context::Call,
    exchange::{Exchange, Run},
    input,
    reply::Reply,
    request_error,
    scopes::Denied,
    span,
    subscriptions::{Announcement, concerns},
    tasks::{self, Owner},
};

/// Log messages from this level on are sent before a client says what it wants.
const DEFAULT_LOG_LEVEL: LogLevel = LogLevel::Info;

/// Answers `initialize` and returns what the session will remember.
pub(crate) fn initialize(
    server: &Server,
    request: &Request<'_>,
    arrival: Arrival,
) -> Result<(SessionRecord, Exchange), RpcError> {
    let (mut params, is_named) = introduction(server, request)?;
    let revision = negotiate(&params.protocol_version);
    // A client may declare what the revision it gets has no words for; that must not be asked of it.
    params.raise(revision);
    let client = ClientProfile {
        info: match is_named {
            IsNamed::Yes => Some(params.client_info),
            IsNamed::No => None,
        },
        capabilities: params.capabilities,
    };
    let principal = arrival.principal.as_deref().cloned();
    let record = SessionRecord::new(principal, revision, Arc::new(client));
    let mut capabilities = server.capabilities(rules(&record));
    if server.catalog().offers_tasks {
        let listed = arrival.principal.is_some() || !arrival.is_forgotten;
        capabilities.tasks = Some(tasks_capability(listed));
    }
    let caller = caller(&record, &RequestMeta::default(), Arc::default(), arrival);
    let span = span::of(server, request, &caller);
    let call = Arc::new(Call::new(request.id.clone(), server.clone(), caller));
    server.attend();
    let mut result = InitializeResult::new(revision.as_str(), capabilities, server.info().clone());
    result.instructions = server.instructions_text().map(str::to_owned);
    let outcome = Ok(Reply::new(&call).object(&mut result, None));
    let exchange = Exchange::new(call, Run::Ready(outcome));
    Ok((record, exchange.in_span(span)))
}

/// Reads `initialize`; a lenient server takes it without `clientInfo`.
///
/// Examples in early documents have none, and clients written after them send none.
fn introduction(
    server: &Server,
    request: &Request<'_>,
) -> Result<(InitializeParams, IsNamed), RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Anonymous {
        protocol_version: String,
        capabilities: ClientCapabilities,
    }
    if !server.is_lenient() || request.params.get("clientInfo").is_some() {
        return Ok((request.params.parse()?, IsNamed::Yes));
    }
    let client = request.params.parse::<Anonymous>()?;
    let nobody = Implementation::new("", "");
    let params = InitializeParams::new(client.protocol_version, client.capabilities, nobody);
    Ok((params, IsNamed::No))
}

/// Whether a client says who it is.
enum IsNamed {
    Yes,
    No,
}

/// Says that tools may be called as tasks; tasks are listed only where those of different callers can be told apart.
fn tasks_capability(listed: bool) -> TasksCapability {
    let mut tools = serde_json::Map::new();
    tools.insert("call".to_owned(), json!({}));
    let requests = TaskRequests::default().tools(tools);
    let mut capability = TasksCapability::default().requests(requests);
    capability.cancel = Some(Default::default());
    capability.list = listed.then(Default::default);
    capability
}

/// The revision to answer with: the one asked for if it has a handshake, else the newest that has.
fn negotiate(asked: &str) -> Revision {
    match asked.parse() {
        Ok(revision) if revision <= Revision::LATEST_LEGACY => revision,
        _ => Revision::LATEST_LEGACY,
    }
}

/// The rules of a session.
pub(crate) fn rules(record: &SessionRecord) -> &'static Rules {
    Rules::of(record.revision)
}

/// Checks what a request says about its version against what its session negotiated.
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

/// Stands in for the session of a peer that was given none: its version is what the header says, or what the
/// absence of the header means.
pub(crate) fn unremembered(
    version_header: Option<&str>,
    principal: Option<Principal>,
) -> Result<SessionRecord, RpcError> {
    let revision = match version_header.map(|version| (version, version.parse())) {
        None => Revision::V2025_03_26,
        Some((_, Ok(revision))) if revision <= Revision::LATEST_LEGACY => revision,
        Some((version, _)) => return Err(super::stateless::unsupported(version)),
    };
    // Never initialized: nobody is there who could be asked anything.
    Ok(SessionRecord::new(
        principal,
        revision,
        ClientProfile::default(),
    ))
}

/// What came of a request in a session.
pub(crate) enum Begun {
    /// It is being answered.
    Exchange(Exchange),
    /// It is answered, once this change is remembered.
    Change(SessionChange, Exchange),
}

/// Begins to answer a request of a session.
pub(crate) fn begin(
    server: &Server,
    record: &SessionRecord,
    live: Arc<Live>,
    request: &Request<'_>,
    meta: &RequestMeta<'_>,
    arrival: Arrival,
) -> Begun {
    let caller = caller(record, meta, live, arrival);
    if let Some(begun) = own(server, request, &caller) {
        let span = span::of(server, request, &caller);
        let call = Arc::new(Call::new(request.id.clone(), server.clone(), caller));
        return match begun {
            Ok(None) => Begun::Exchange(empty(call).in_span(span)),
            Ok(Some(change)) => Begun::Change(change, empty(call).in_span(span)),
            Err(denied) => Begun::Exchange(Exchange::denied(call, denied).in_span(span)),
        };
    }
    if server.is_lenient() && request.method == "completions/complete" {
        let renamed = Request {
            id: request.id.clone(),
            method: "completion/complete".into(),
            params: request.params.clone(),
        };
        return Begun::Exchange(crate::dispatch::begin(server, &renamed, caller, None));
    }
    if !is_known(&request.method, record.revision)
        && server
            .extension_method(&request.method, caller.rules)
            .is_none()
    {
        let call = Arc::new(Call::new(request.id.clone(), server.clone(), caller));
        let error = RpcError::method_not_found(&request.method);
        return Begun::Exchange(Exchange::new(call, Run::Ready(Err(error))));
    }
    Begun::Exchange(crate::dispatch::begin(server, request, caller, None))
}

/// Answers a ping that came before any handshake.
pub(crate) fn pong(server: &Server, id: RequestId, arrival: Arrival) -> Exchange {
    let record = SessionRecord::new(None, Revision::LATEST_LEGACY, ClientProfile::default());
    let caller = caller(&record, &RequestMeta::default(), Arc::default(), arrival);
    empty(Arc::new(Call::new(id, server.clone(), caller)))
}

/// The methods that exist only in sessions.
fn own(
    server: &Server,
    request: &Request<'_>,
    caller: &Caller,
) -> Option<Result<Option<SessionChange>, Denied>> {
    let resources = || {
        let offered = server.catalog().has_resources();
        if offered {
            Ok(())
        } else {
            Err(Denied::from(RpcError::method_not_found(&request.method)))
        }
    };
    Some(match &*request.method {
        "ping" => Ok(None),
        "shutdown" if server.is_lenient() => Ok(None),
        "logging/setLevel" => request
            .params
            .parse::<SetLevelParams>()
            .map(|params| Some(SessionChange::LogLevel(params.level)))
            .map_err(Denied::from),
        "resources/subscribe" => resources().and_then(|()| {
            let uri = request.params.parse::<SubscribeParams>()?.uri;
            let principal = caller.principal.as_deref();
            match server.catalog().find_resource(&uri, principal) {
                Some(found) if found.is_there(&uri) => {
                    found.needs().check(caller)?;
                    Ok(Some(SessionChange::Subscribe(uri)))
                }
                _ => Err(request_error::not_found(caller.rules, &uri).into()),
            }
        }),
        "resources/unsubscribe" => resources().and_then(|()| {
            let uri = request.params.parse::<SubscribeParams>()?.uri;
            Ok(Some(SessionChange::Unsubscribe(uri)))
        }),
        _ => return None,
    })
}

/// Refuses a whole array for what must not be in one.
pub(crate) fn check_batch(entries: &[Result<Message<'_>, Malformed>]) -> Result<(), RpcError> {
    for entry in entries {
        let Ok(Message::Request(request)) = entry else {
            continue;
        };
        if request.method == "initialize" {
            return Err(RpcError::invalid_request(
                "`initialize` must not be part of a batch",
            ));
        }
        if super::meta(request).is_ok_and(|meta| meta.protocol_version.is_some()) {
            return Err(RpcError::invalid_request(
                "a request that names its protocol version must not be part of a batch",
            ));
        }
    }
    Ok(())
}

/// Takes a notification; returns what the session has to remember.
pub(crate) fn notify(
    notification: &Notification<'_>,
    live: Option<&Live>,
) -> Option<SessionChange> {
    match &*notification.method {
        // Early clients left the prefix out.
        "notifications/initialized" | "initialized" => {
            // A ping that was answered during the handshake does not count.
            if let Some(live) = live {
                live.starts_over();
            }
            return Some(SessionChange::Initialized);
        }
        "notifications/cancelled" => {
            // Malformed cancellations are ignored, as the specification wants.
            if let (Some(live), Ok(params)) = (live, notification.params.parse::<CancelledParams>())
                && let Some(id) = params.request_id
            {
                live.cancel(&id);
            }
        }
        "notifications/progress" => {
            if let (Some(live), Ok(params)) = (live, notification.params.parse::<ProgressParams>())
            {
                live.progressed(&params.progress_token);
            }
        }
        method => tracing::trace!(method, "a notification without effect"),
    }
    None
}

/// Says whether nothing unsolicited may be sent yet to a peer on a byte stream: its handshake has to be done, and in the
/// oldest revisions it has to have an answer.
///
/// A peer that opens a GET stream asks to hear of changes, whatever state its handshake is in.
pub(crate) fn is_quiet(record: &SessionRecord, live: &Live) -> bool {
    !record.initialized || (rules(record).quiet_start && !live.was_answered())
}

/// The notification for a change, if it concerns this session.
pub(crate) fn notice(
    server: &Server,
    record: &SessionRecord,
    id: SessionId,
    live: &Live,
    announcement: &Announcement,
) -> Option<Bytes> {
    let rules = rules(record);
    match &announcement.change {
        Change::Task { task } => {
            let owner = Owner::of_session(record.principal.as_ref(), id);
            let ours = rules.tasks == TaskDesign::Asked && *task.owner == *owner.key();
            ours.then(|| tasks::status_notification(task).into())
        }
        Change::ElicitationCompleted { id } => {
            let is_asked = rules.announces_visits && live.visits.end(id);
            is_asked.then(|| input::visit_ended(id).into())
        }
        Change::ResourceUpdated { uri } => {
            let principal = record.principal.as_ref();
            concerns(server, principal, &record.subscriptions, uri)
                .then(|| announcement.message.clone())
        }
        _ => Some(announcement.message.clone()).filter(|message| !message.is_empty()),
    }
}

/// Everything that a session that missed changes has to be told.
pub(crate) fn all_changes(record: &SessionRecord) -> Vec<Change> {
    let updates = record
        .subscriptions
        .iter()
        .map(|uri| Change::ResourceUpdated {
            uri: uri.as_str().into(),
        });
    [
        Change::ToolsChanged,
        Change::PromptsChanged,
        Change::ResourcesChanged,
    ]
    .into_iter()
    .chain(updates)
    .collect()
}

fn is_known(method: &str, revision: Revision) -> bool {
    Method::named(method).is_some_and(|method| {
        method.kind == Kind::Request
            && matches!(
                method.direction(revision),
                Some(Direction::ToServer | Direction::Both)
            )
    })
}

fn caller(
    record: &SessionRecord,
    meta: &RequestMeta<'_>,
    live: Arc<Live>,
    arrival: Arrival,
) -> Caller {
    Caller {
        rules: rules(record),
        client: record.client.clone(),
        principal: arrival.principal,
        headers: arrival.headers,
        peer: arrival.peer,
        extensions: arrival.extensions,
        trace: super::trace(meta),
        progress_token: meta.progress_token.clone(),
        log_level: Some(record.log_level.unwrap_or(DEFAULT_LOG_LEVEL)),
        may_be_asked: record.initialized,
        live: Some(live),
        says_goodbye: false,
        connected: arrival.connected,
        session: arrival.session,
    }
}

fn empty(call: Arc<Call>) -> Exchange {
    let outcome = Ok(Reply::new(&call).empty());
    Exchange::new(call, Run::Ready(outcome))
}

/// Announces that a session is needed, in the words of a JSON-RPC error.
pub(crate) fn session_needed() -> RpcError {
    RpcError::invalid_request("this request belongs to no session: begin with `initialize`, then send its `Mcp-Session-Id`")
        .with_data(json!({ "supported": Revision::ALL.map(Revision::as_str) }))
}
