//! JSON-RPC batches, which only revision 2025-03-26 has.

use std::{future::poll_fn, task::Poll};

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{self, MalformedMessage, Message, Request},
    meta::RequestMeta,
};
use turnbuckle_store::SessionRecord;

use crate::{
    http::{
        body::ResponseBody,
        endpoint::{InFlightPermit, RequestHead},
        post::{
            call_set::{CallSet, CallSetEvent},
            session, session_response,
        },
        responses::{self, event_stream},
        session::{ActiveSessionGuard, instances},
    },
    lifecycle::{self, BATCH_UNSUPPORTED, RevisionRules},
    request::FinalResponse,
};

/// Responds to a batch of a session.
pub(crate) async fn post(
    active: ActiveSessionGuard,
    record: &SessionRecord,
    head: &RequestHead,
    entries: Vec<Result<Message<'_>, MalformedMessage>>,
    mut permit: InFlightPermit,
) -> Response<ResponseBody> {
    let rules = lifecycle::session::rules(record);
    if let Err(response) = check_batch(rules, &entries) {
        return response;
    }
    let mut calls = CallSet::batch();
    let mut sent = Ok(());
    for entry in entries {
        match entry {
            Ok(Message::Request(request)) => {
                add_call(&mut calls, &active, record, head, &request).await;
            }
            Ok(Message::Notification(notification)) => {
                session::handle_notification(&active, &notification).await;
            }
            Ok(Message::Response(response)) => {
                sent = sent.and(instances::complete_client_request(&active, response).await);
            }
            Ok(Message::ErrorWithoutId(error)) => {
                tracing::debug!(%error, "the client reported an error without an id");
            }
            Err(malformed) if malformed.is_response() => {
                sent = sent.and(instances::fail_client_request(&active, malformed).await);
            }
            Err(malformed) => calls.push_response(malformed_response(rules, &malformed)),
        }
    }
    if calls.is_empty() {
        let accepted = responses::status_only(StatusCode::ACCEPTED);
        return sent.err().unwrap_or(accepted);
    }
    if finish_without_waiting(&mut calls).await {
        active.session.runtime.note_first_response();
        return match calls.into_response() {
            Some(final_response) => responses::rpc_response(final_response),
            None => event_stream(ResponseBody::empty()),
        };
    }
    permit.count_for(head);
    session_response::run_detached(calls, record, active, permit).await
}

/// Rejects a batch if the revision has none or if it contains a message that must not be batched.
pub(crate) fn check_batch(
    rules: &RevisionRules,
    entries: &[Result<Message<'_>, MalformedMessage>],
) -> Result<(), Response<ResponseBody>> {
    let checked = if rules.supports_batches {
        lifecycle::session::check_batch(entries)
    } else {
        Err(RpcError::invalid_request(BATCH_UNSUPPORTED))
    };
    checked.map_err(|error| responses::error_without_id(rules, &error))
}

/// Starts a request and adds it, or adds its error response.
async fn add_call(
    calls: &mut CallSet,
    active: &ActiveSessionGuard,
    record: &SessionRecord,
    head: &RequestHead,
    request: &Request<'_>,
) {
    let id = Some(&request.id);
    let meta: RequestMeta<'_> = match lifecycle::parse_meta(request) {
        Ok(meta) => meta,
        Err(error) => return calls.push_response(FinalResponse::error(id, &error, 200)),
    };
    let mut running_request = match session::start_request(active, record, head, request, &meta) {
        Ok(running_request) => running_request,
        Err(final_response) => return calls.push_response(final_response),
    };
    if let Some(update) = running_request.take_session_update()
        && let Err(error) = session::store_update(active, *update).await
    {
        return calls.push_response(FinalResponse::error(id, &error, 200));
    }
    match active.session.runtime.register(&running_request.call) {
        Ok(running) => calls.push(running_request, running),
        Err(error) => calls.push_response(FinalResponse::error(id, &error, 400)),
    }
}

/// Runs the calls until they have to wait. Returns whether all of them finished.
async fn finish_without_waiting(calls: &mut CallSet) -> bool {
    loop {
        match poll_fn(|cx| Poll::Ready(calls.poll_next(cx))).await {
            Poll::Ready(CallSetEvent::Done) => return true,
            Poll::Ready(CallSetEvent::CallFinished | CallSetEvent::CloseStream) => {}
            Poll::Ready(CallSetEvent::Message(message)) => {
                calls.requeue(message);
                return false;
            }
            Poll::Pending => return false,
        }
    }
}

/// Returns the error response to a batch entry that is not a message.
pub(crate) fn malformed_response(
    rules: &RevisionRules,
    malformed: &MalformedMessage,
) -> FinalResponse {
    let error = &malformed.error;
    if malformed.id.is_none() && rules.errors_carry_null_id {
        let mut body = Vec::new();
        jsonrpc::write_error_with_null_id(&mut body, error);
        return FinalResponse {
            body: body.into(),
            status: 400,
            rejection: None,
        };
    }
    FinalResponse::error(malformed.id.as_ref(), error, 400)
}
