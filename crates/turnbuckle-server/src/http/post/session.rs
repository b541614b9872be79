//! POST requests of a session, and `initialize`.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use ::http::{HeaderValue, Response, StatusCode};
use bytes::Bytes;
use turnbuckle_protocol::{
    RequestId, RpcError,
    jsonrpc::{Incoming, MalformedMessage, Message, Notification, Request},
    meta::RequestMeta,
};
use turnbuckle_store::{ControlMessage, SessionRecord, SessionUpdate, StoreError};

use crate::{
    http::{
        SessionMode,
        body::ResponseBody,
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        mcp_headers::{MCP_PROTOCOL_VERSION, MCP_SESSION_ID},
        post::{batch, call_set::CallSet, session_response},
        responses,
        session::{ActiveSessionGuard, find_session, instances, join_instances, limits},
    },
    lifecycle::session,
    middleware::SessionKey,
    request::{FinalResponse, RequestEvent, RunningRequest},
    server::instance::in_time,
};

/// Responds to `initialize` and creates a session. An earlier session of the client is left to expire.
pub(crate) async fn initialize(
    endpoint: &Arc<Endpoint>,
    head: &RequestHead,
    request: Request<'_>,
) -> Response<ResponseBody> {
    if let Err(error) = head.version.reject_duplicate() {
        return responses::rpc_error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
    }
    let mut transport_info = head.transport_info();
    transport_info.is_sessionless = endpoint.options.session_mode == SessionMode::Off;
    let (record, mut running_request) =
        match session::initialize(&endpoint.server, &request, transport_info) {
            Ok(started) => started,
            Err(error) => return responses::rpc_error(StatusCode::OK, Some(&request.id), &error),
        };
    let RequestEvent::Response(final_response) = running_request.next_event().await else {
        let error = RpcError::internal("`initialize` did not produce a result");
        return responses::rpc_error(StatusCode::OK, Some(&request.id), &error);
    };
    let version = record.revision.as_str();
    let mut response = responses::rpc_response(final_response);
    let header = HeaderValue::from_static(version);
    response.headers_mut().insert(MCP_PROTOCOL_VERSION, header);
    if endpoint.options.session_mode == SessionMode::Off {
        return response;
    }
    if !endpoint.server.may_serve_sessions()
        && let Err(response) = Box::pin(join_instances(endpoint, Some(&request.id))).await
    {
        return response;
    }
    endpoint.sweep_if_due();
    let record = record.owned_by(limits::quota_owner(head));
    match endpoint.create_session(record).await {
        Ok(session_id) => {
            let key = SessionKey::from_id(&session_id);
            endpoint.server.session_began(key, version, "tcp");
            if let Ok(id) = HeaderValue::try_from(session_id.to_string()) {
                response.headers_mut().insert(MCP_SESSION_ID, id);
            }
            response
        }
        Err(error @ StoreError::TooLarge { .. }) => {
            let error = RpcError::invalid_params(error.to_string());
            responses::rpc_error(StatusCode::OK, Some(&request.id), &error)
        }
        Err(error) => {
            if let Some(suppressed) = endpoint.log_limiters.session_rejected.try_pass() {
                tracing::warn!(%error, suppressed, "session rejected");
            }
            create_session_error(&request.id, &error)
        }
    }
}

/// Returns the response when the store did not create a session: 429 at a limit without an idle session that could end, else 503.
fn create_session_error(id: &RequestId, error: &StoreError) -> Response<ResponseBody> {
    match error {
        StoreError::TooMany { .. } => {
            let message = format!(
                "{error}, and no session is idle; end one with DELETE, or retry in a few seconds"
            );
            responses::too_many_requests(Some(id), message)
        }
        error => responses::service_unavailable(Some(id), error.to_string()),
    }
}

/// Responds to a message of a session.
///
/// Rare cases are boxed: nearly all messages are calls, and their future stays small.
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an `async fn` stores its arguments twice"
)]
pub(crate) fn post<'a>(
    endpoint: &'a Arc<Endpoint>,
    head: &'a RequestHead,
    incoming: Result<Incoming<'a>, MalformedMessage>,
    meta: RequestMeta<'a>,
    permit: InFlightPermit,
) -> impl Future<Output = Response<ResponseBody>> + Send + 'a {
    async move {
        let (session_id, record) = match find_session(endpoint, head, request_id(&incoming)).await {
            Ok(found) => found,
            Err(response) => return response,
        };
        let active_session = head.connection.take_session(endpoint, session_id);
        match incoming {
            Ok(Incoming::One(Message::Request(ref request))) => {
                run_call(active_session, &record, head, request, &meta, permit).await
            }
            Ok(Incoming::One(Message::Notification(ref notification))) => {
                handle_notification(&active_session, notification).await
            }
            Ok(Incoming::One(Message::Response(response))) => {
                let runtime = &active_session.session.runtime;
                if runtime.sender_elsewhere(&response.id).is_none() {
                    runtime.complete(response);
                    return responses::status_only(StatusCode::ACCEPTED);
                }
                let sent = instances::complete_client_request(&active_session, response);
                let accepted = responses::status_only(StatusCode::ACCEPTED);
                Box::pin(sent).await.err().unwrap_or(accepted)
            }
            Ok(Incoming::One(Message::ErrorWithoutId(error))) => {
                tracing::debug!(%error, "the client reported an error without an id");
                responses::status_only(StatusCode::ACCEPTED)
            }
            Ok(Incoming::Batch(entries)) => {
                Box::pin(batch::post(active_session, &record, head, entries, permit)).await
            }
            Err(malformed) => {
                Box::pin(malformed_response(&active_session, &record, malformed)).await
            }
        }
    }
}

/// Returns the id of a request; responses to other messages of an unknown session have none.
fn request_id<'a>(incoming: &'a Result<Incoming<'_>, MalformedMessage>) -> Option<&'a RequestId> {
    match incoming {
        Ok(Incoming::One(Message::Request(request))) => Some(&request.id),
        _ => None,
    }
}

/// Runs a request. If it does not finish immediately, a task takes it over, independent of the connection.
async fn run_call(
    active_session: ActiveSessionGuard,
    record: &SessionRecord,
    head: &RequestHead,
    request: &Request<'_>,
    meta: &RequestMeta<'_>,
    mut permit: InFlightPermit,
) -> Response<ResponseBody> {
    let mut running_request = match start_request(&active_session, record, head, request, meta) {
        Ok(running_request) => running_request,
        Err(final_response) => return responses::rpc_response(final_response),
    };
    if let Some(storing) = running_request
        .take_session_update()
        .map(|update| Box::pin(store_update(&active_session, *update)))
        && let Err(error) = storing.await
    {
        return responses::rpc_error(StatusCode::OK, Some(&request.id), &error);
    }
    let runtime = &active_session.session.runtime;
    // Most calls finish here, so only the others are tracked, below. Two concurrent calls with the same id can both run up to
    // their first pause; then one of them is rejected and the other continues.
    let mut messages = Vec::new();
    match poll_fn(|cx| Poll::Ready(running_request.poll_event(cx))).await {
        Poll::Ready(RequestEvent::Response(final_response)) => {
            runtime.note_first_response();
            head.connection.return_session(active_session);
            return responses::rpc_response(final_response);
        }
        Poll::Ready(RequestEvent::Message(message)) => {
            messages.reserve(MAX_MESSAGES_AT_ONCE);
            messages.push(message);
            if let Some(final_response) = finish_now(&mut running_request, &mut messages) {
                let response = session_response::respond_finished(
                    messages,
                    final_response,
                    record,
                    active_session,
                    head,
                    permit,
                );
                return Box::pin(response).await;
            }
        }
        Poll::Ready(RequestEvent::Cancelled(_)) | Poll::Pending => {}
    }
    let in_flight_guard = match active_session
        .session
        .runtime
        .register(&running_request.call)
    {
        Ok(guard) => guard,
        Err(error) => {
            return responses::rpc_error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
        }
    };
    let calls = CallSet::single(running_request, in_flight_guard, messages);
    permit.count_for(head);
    Box::pin(session_response::run_detached(
        calls,
        record,
        active_session,
        permit,
    ))
    .await
}

/// Maximum number of messages of a call that has finished without waiting, and the response is sent with them.
const MAX_MESSAGES_AT_ONCE: usize = 8;

/// Takes the messages that a call has sent, and its response if it has finished. Does not run the handler.
fn finish_now(
    running_request: &mut RunningRequest,
    messages: &mut Vec<Bytes>,
) -> Option<FinalResponse> {
    while !running_request.needs_handler() && messages.len() < MAX_MESSAGES_AT_ONCE {
        match running_request.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(RequestEvent::Message(message)) => messages.push(message),
            Poll::Ready(RequestEvent::Response(final_response)) => return Some(final_response),
            Poll::Ready(RequestEvent::Cancelled(rest)) => {
                messages.extend(rest);
                return None;
            }
            Poll::Pending => return None,
        }
    }
    None
}

/// Starts a request. Its session update must be stored before it runs.
pub(crate) fn start_request(
    active_session: &ActiveSessionGuard,
    record: &SessionRecord,
    head: &RequestHead,
    request: &Request<'_>,
    meta: &RequestMeta<'_>,
) -> Result<RunningRequest, FinalResponse> {
    let runtime = &active_session.session.runtime;
    if let Err(error) = runtime.check_unused(&request.id) {
        return Err(FinalResponse::error(Some(&request.id), &error, 400));
    }
    let server = &active_session.endpoint.server;
    let mut transport_info = head.transport_info();
    transport_info.session = Some(active_session.session_id);
    let runtime = runtime.clone();
    let origin = session::request_origin(record, meta, runtime, transport_info);
    let route = session::route(server, record, request, &origin);
    let running_request = RunningRequest::start_in_session(server, request, origin, route);
    if !running_request.has_result() && at_call_limit(active_session) {
        let error = RpcError::internal(
            "too many running calls in this session; retry when some have finished",
        );
        return Err(FinalResponse::error(Some(&request.id), &error, 429));
    }
    Ok(running_request)
}

/// Returns whether the session has reached its limit of running calls. Calls outlive their connections, so no other limit
/// stops one client from using all permits.
fn at_call_limit(active_session: &ActiveSessionGuard) -> bool {
    active_session.session.runtime.in_flight()
        >= active_session.endpoint.options.max_calls_per_session
}

pub(crate) async fn store_update(
    active_session: &ActiveSessionGuard,
    update: SessionUpdate,
) -> Result<(), RpcError> {
    let sessions = &active_session.endpoint.server.store_ref().sessions;
    let session_id = &active_session.session_id;
    let changes_subscriptions = matches!(
        update,
        SessionUpdate::Subscribe(_) | SessionUpdate::Unsubscribe(_)
    );
    let outcome = match update {
        SessionUpdate::Subscribe(uri) => {
            Box::pin(active_session.endpoint.subscribe(session_id, uri)).await
        }
        update => sessions.update(session_id, update).await.map(drop),
    };
    let outcome = match outcome {
        Ok(()) if changes_subscriptions => {
            let session = *session_id;
            let control = &active_session.endpoint.server.store_ref().control;
            let message = ControlMessage::SubscriptionsChanged { session };
            // Stored before the client gets its response, so that it is notified of every later change.
            Box::pin(in_time(control.publish(message))).await
        }
        outcome => outcome,
    };
    match outcome {
        // The session may have ended since; then there is nothing to store.
        Ok(()) => Ok(()),
        Err(error @ (StoreError::TooMany { .. } | StoreError::TooLarge { .. })) => {
            Err(RpcError::invalid_params(error.to_string()))
        }
        Err(error) => {
            active_session.endpoint.log_limiters.store_failed(&error);
            Err(RpcError::internal("the session could not be updated"))
        }
    }
}

/// Handles a notification.
pub(crate) async fn handle_notification(
    active_session: &ActiveSessionGuard,
    notification: &Notification<'_>,
) -> Response<ResponseBody> {
    let runtime = &active_session.session.runtime;
    let (server, session_id) = (&active_session.endpoint.server, active_session.session_id);
    let Some(effect) = session::notify(server, session_id, notification, Some(runtime)) else {
        return responses::status_only(StatusCode::ACCEPTED);
    };
    let update = match Box::pin(instances::apply_elsewhere(active_session, effect)).await {
        Ok(update) => update,
        Err(response) => return response,
    };
    if let Some(update) = update
        && let Err(error) = store_update(active_session, update).await
    {
        return responses::service_unavailable(None, error.message);
    }
    responses::status_only(StatusCode::ACCEPTED)
}

async fn malformed_response(
    active_session: &ActiveSessionGuard,
    record: &SessionRecord,
    malformed: MalformedMessage,
) -> Response<ResponseBody> {
    let runtime = &active_session.session.runtime;
    if runtime.is_awaiting(&malformed) {
        let response = responses::rpc_error(StatusCode::BAD_REQUEST, None, &malformed.error);
        let failed = instances::fail_client_request(active_session, malformed).await;
        return failed.err().unwrap_or(response);
    }
    match &malformed.id {
        None => responses::error_without_id(session::rules(record), &malformed.error),
        id => responses::rpc_error(StatusCode::BAD_REQUEST, id.as_ref(), &malformed.error),
    }
}
