//! Requests of session-based revisions with sessions disabled: the version header alone selects the revision.
//!
//! Streams cannot be resumed and the client cannot be sent requests, so a call ends with its connection.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use bytes::Bytes;
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{self, Incoming, MalformedMessage, Message, Request},
};
use turnbuckle_store::SessionRecord;

use crate::{
    http::{
        body::ResponseBody,
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        post::{
            batch,
            call_set::{CallSet, CallSetEvent},
            stateless,
        },
        responses,
        session::ActiveSession,
    },
    lifecycle::{
        self,
        runtime::SessionRuntime,
        session::{self, SessionRequest},
    },
    request::{FinalResponse, RunningRequest},
};

/// Responds to a POST without a session.
pub(crate) async fn post(
    endpoint: &Arc<Endpoint>,
    head: &RequestHead,
    bytes: &Bytes,
    permit: InFlightPermit,
) -> Response<ResponseBody> {
    let principal = head.principal().as_deref().cloned();
    let record = head
        .version
        .reject_duplicate()
        .and_then(|()| session::sessionless_record(head.version(), principal));
    let record = match record {
        Ok(record) => record,
        Err(error) => return responses::rpc_error(StatusCode::BAD_REQUEST, None, &error),
    };
    match jsonrpc::parse(bytes) {
        Ok(Incoming::One(Message::Request(request))) => {
            match start_request(endpoint, &record, Arc::default(), head, &request) {
                Ok(running_request) => {
                    stateless::respond(running_request, permit, &endpoint.options).await
                }
                Err(error) => responses::rpc_error(StatusCode::OK, Some(&request.id), &error),
            }
        }
        // No request is running that a notification or response could refer to.
        Ok(Incoming::One(_)) => responses::status_only(StatusCode::ACCEPTED),
        Ok(Incoming::Batch(entries)) => respond_batch(endpoint, &record, head, entries).await,
        Err(malformed) => responses::rpc_error(
            StatusCode::BAD_REQUEST,
            malformed.id.as_ref(),
            &malformed.error,
        ),
    }
}

fn start_request(
    endpoint: &Endpoint,
    record: &SessionRecord,
    runtime: Arc<SessionRuntime>,
    head: &RequestHead,
    request: &Request<'_>,
) -> Result<RunningRequest, RpcError> {
    let meta = lifecycle::parse_meta(request)?;
    let transport_info = head.transport_info();
    match session::begin(
        &endpoint.server,
        record,
        runtime,
        request,
        &meta,
        transport_info,
    ) {
        // Without a session there is nothing to store, but the request still gets its result.
        SessionRequest::Running(running_request) | SessionRequest::Update(_, running_request) => {
            Ok(running_request)
        }
    }
}

/// Responds to a batch with a batch. Notifications sent during the calls are dropped: a JSON array cannot contain them.
async fn respond_batch(
    endpoint: &Endpoint,
    record: &SessionRecord,
    head: &RequestHead,
    entries: Vec<Result<Message<'_>, MalformedMessage>>,
) -> Response<ResponseBody> {
    let rules = session::rules(record);
    if let Err(response) = batch::check_batch(rules, &entries) {
        return response;
    }
    let active: Arc<ActiveSession> = Arc::default();
    let mut calls = CallSet::batch();
    for entry in entries {
        let request = match entry {
            Ok(Message::Request(request)) => request,
            Ok(_) => continue,
            // No client request is pending that it could be the response to.
            Err(malformed) if malformed.is_response() => continue,
            Err(malformed) => {
                calls.push_response(batch::malformed_response(rules, &malformed));
                continue;
            }
        };
        let started = start_request(endpoint, record, active.runtime.clone(), head, &request)
            .and_then(|running_request| {
                active
                    .track_call(&running_request.call)
                    .map(|in_flight| (running_request, in_flight))
            });
        match started {
            Ok((running_request, in_flight)) => calls.push(running_request, in_flight),
            Err(error) => calls.push_response(FinalResponse::error(Some(&request.id), &error, 200)),
        }
    }
    while !matches!(calls.next().await, CallSetEvent::Done) {}
    match calls.into_response() {
        Some(final_response) => responses::rpc_response(final_response),
        None => responses::status_only(StatusCode::ACCEPTED),
    }
}
