//! Answers that are not results: what was wrong, and what to change.

use ::http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER},
};
use turnbuckle_protocol::{RequestId, RpcError, jsonrpc};

use super::{body::Body, keeper};
use crate::{exchange::Answer, lifecycle::Rules};

/// Refuses a request before anyone looked for its id.
pub(super) fn plain(status: StatusCode, message: impl Into<String>) -> Response<Body> {
    error(status, None, &RpcError::invalid_request(message))
}

/// Refuses a request with an error of its own.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Response<Body> {
    let mut body = Vec::with_capacity(256);
    jsonrpc::write_error(&mut body, id, error);
    json(status, Body::full(body.into()))
}

/// Refuses a message that has no id, or none that could be read: some revisions want to read `null` then.
pub(super) fn without_id(rules: &Rules, problem: &RpcError) -> Response<Body> {
    if !rules.null_ids {
        return error(StatusCode::BAD_REQUEST, None, problem);
    }
    let mut body = Vec::with_capacity(256);
    jsonrpc::write_error_with_null_id(&mut body, problem);
    json(StatusCode::BAD_REQUEST, Body::full(body.into()))
}

/// Refuses a method, and names those that are possible.
pub(super) fn method(allow: &'static str) -> Response<Body> {
    let mut response = plain(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("the method must be one of: {allow}"),
    );
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// Asks the client to come back later.
pub(super) fn busy(id: Option<&RequestId>, message: impl Into<String>) -> Response<Body> {
    let error_object = RpcError::internal(message);
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, id, &error_object);
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Refuses what this caller has too much of already.
pub(super) fn too_many(id: Option<&RequestId>, message: impl Into<String>) -> Response<Body> {
    let mut response = busy(id, message);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response
}

/// The answer of an exchange as one JSON body.
pub(super) fn answer(answer: Answer) -> Response<Body> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, Body::written(answer.body));
    if let Some(lacking) = answer.lacking {
        *response.status_mut() = keeper::status(&lacking.refusal);
        keeper::challenge(response.headers_mut(), &lacking.refusal);
    }
    response
}

/// A body of JSON.
pub(super) fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A status, and nothing to say.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
