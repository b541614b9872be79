//! HTTP responses: JSON-RPC responses, errors, bare status codes and event streams.

use ::http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use turnbuckle_protocol::{RequestId, RpcError, jsonrpc};

use crate::{
    catalog::scopes::HttpRejectionKind,
    http::{auth::authenticator, body::ResponseBody},
    lifecycle::{RevisionRules, stateless::RequestRejection},
    request::FinalResponse,
};

/// Rejects a request with `invalid request`, before its id is known.
pub(super) fn invalid_request(
    status: StatusCode,
    message: impl Into<String>,
) -> Response<ResponseBody> {
    rpc_error(status, None, &RpcError::invalid_request(message))
}

/// Responds with a JSON-RPC error.
pub(super) fn rpc_error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Response<ResponseBody> {
    let mut body = Vec::with_capacity(256);
    jsonrpc::write_error(&mut body, id, error);
    json(status, ResponseBody::full(body.into()))
}

/// Responds to a request that was rejected before dispatch.
pub(super) fn rejection(
    id: Option<&RequestId>,
    rejection: &RequestRejection,
) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(rejection.status).unwrap_or(StatusCode::BAD_REQUEST);
    rpc_error(status, id, &rejection.error)
}

/// Rejects a message without a readable id. Some revisions require `"id": null` in that case.
pub(super) fn error_without_id(
    rules: &RevisionRules,
    problem: &RpcError,
) -> Response<ResponseBody> {
    if !rules.errors_carry_null_id {
        return rpc_error(StatusCode::BAD_REQUEST, None, problem);
    }
    let mut body = Vec::with_capacity(256);
    jsonrpc::write_error_with_null_id(&mut body, problem);
    json(StatusCode::BAD_REQUEST, ResponseBody::full(body.into()))
}

/// Responds with 405 and the allowed methods.
pub(super) fn method_not_allowed(allow: &'static str) -> Response<ResponseBody> {
    let mut response = invalid_request(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("the method must be one of: {allow}"),
    );
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// Responds with 503 and `Retry-After`.
pub(super) fn service_unavailable(
    id: Option<&RequestId>,
    message: impl Into<String>,
) -> Response<ResponseBody> {
    let error_object = RpcError::internal(message);
    let mut response = rpc_error(StatusCode::SERVICE_UNAVAILABLE, id, &error_object);
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Responds with 429 and `Retry-After`, when the caller exceeds a limit of its own.
pub(super) fn too_many_requests(
    id: Option<&RequestId>,
    message: impl Into<String>,
) -> Response<ResponseBody> {
    let mut response = service_unavailable(id, message);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response
}

/// Responds with the result or error of a request as one JSON body.
pub(super) fn rpc_response(final_response: FinalResponse) -> Response<ResponseBody> {
    let status =
        StatusCode::from_u16(final_response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, ResponseBody::from_encoded(final_response.body));
    match final_response.rejection.map(|rejection| rejection.kind) {
        Some(HttpRejectionKind::InsufficientScope(rejection)) => {
            *response.status_mut() = authenticator::rejection_status(&rejection);
            authenticator::add_challenges(response.headers_mut(), &rejection);
        }
        Some(HttpRejectionKind::RetryAfter(seconds)) => {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        None => {}
    }
    response
}

/// Responds with a JSON body.
pub(super) fn json(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Responds with a status code and an empty body.
pub(super) fn status_only(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}

/// Responds with an event stream.
pub(super) fn event_stream(body: ResponseBody) -> Response<ResponseBody> {
    const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}
