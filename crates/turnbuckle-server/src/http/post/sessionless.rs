//! Requests of session-based revisions with sessions disabled: the version header alone selects the revision.
//!
//! Streams cannot be resumed and the client cannot be sent requests, so a call ends with its connection.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{
    jsonrpc::{Incoming, MalformedMessage, Message, Request},
    meta::RequestMeta,
};
use turnbuckle_store::SessionRecord;

use crate::{
    http::{
        body::ResponseBody,
        endpoint::{Endpoint, InFlightPermit, RequestHead},
        post::{
            batch,
            call_set::{CallSet, CallSetEvent},
            malformed_id, stateless,
        },
        responses,
    },
    lifecycle::{self, runtime::SessionRuntime, session},
    request::{FinalResponse, RunningRequest},
};

/// Responds to a message without a session.
pub(crate) async fn post(
    endpoint: &Arc<Endpoint>,
    head: &RequestHead,
    incoming: Result<Incoming<'_>, MalformedMessage>,
    meta: RequestMeta<'_>,
    mut permit: InFlightPermit,
) -> Response<ResponseBody> {
    let incoming = match incoming {
        Ok(incoming) => incoming,
        Err(malformed) => {
            let id = malformed_id(&malformed);
            return responses::rpc_error(StatusCode::BAD_REQUEST, id, &malformed.error);
        }
    };
    let principal = head.principal().as_deref().cloned();
    let record = head
        .version
        .reject_duplicate()
        .and_then(|()| session::sessionless_record(&endpoint.server, head.version(), principal));
    let record = match record {
        Ok(record) => record,
        Err(error) => return responses::rpc_error(StatusCode::BAD_REQUEST, None, &error),
    };
    match incoming {
        Incoming::One(Message::Request(request)) => {
            let running_request =
                start_request(endpoint, &record, Arc::default(), head, &request, &meta);
            stateless::respond(running_request, permit, head).await
        }
        // No request is running that a notification or response could refer to.
        Incoming::One(_) => responses::status_only(StatusCode::ACCEPTED),
        Incoming::Batch(entries) => {
            permit.count_for(head);
            respond_batch(endpoint, &record, head, entries).await
        }
    }
}

fn start_request(
    endpoint: &Endpoint,
    record: &SessionRecord,
    runtime: Arc<SessionRuntime>,
    head: &RequestHead,
    request: &Request<'_>,
    meta: &RequestMeta<'_>,
) -> RunningRequest {
    let (server, transport_info) = (&endpoint.server, head.transport_info());
    let origin = session::request_origin(record, meta, runtime, transport_info);
    let route = session::route(server, record, request, &origin);
    // Without a session its update is not stored, but the request still gets its result.
    RunningRequest::start_in_session(server, request, origin, route)
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
    let runtime: Arc<SessionRuntime> = Arc::default();
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
        let started = lifecycle::parse_meta(&request).and_then(|meta| {
            let running_request =
                start_request(endpoint, record, runtime.clone(), head, &request, &meta);
            let in_flight = runtime.register(&running_request.call)?;
            Ok((running_request, in_flight))
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
