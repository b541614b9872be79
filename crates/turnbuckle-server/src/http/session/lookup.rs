//! Looks up the session of a request.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{RequestId, RpcError};
use turnbuckle_store::{SessionId, SessionRecord, StoreError};

use crate::{
    http::{
        body::ResponseBody,
        endpoint::{Endpoint, RequestHead},
        mcp_headers::MCP_SESSION_ID,
        responses,
    },
    lifecycle::session,
};

/// Finds the session of a request, and checks its owner and protocol version.
pub(crate) async fn find_session(
    endpoint: &Endpoint,
    head: &RequestHead,
    id: Option<&RequestId>,
) -> Result<(SessionId, Arc<SessionRecord>), Response<ResponseBody>> {
    let mut values = head.headers.get_all(MCP_SESSION_ID).iter();
    let (Some(session), None) = (values.next(), values.next()) else {
        return Err(missing_session_id(id));
    };
    let session_id: Option<SessionId> = session.to_str().ok().and_then(|text| text.parse().ok());
    let Some(session_id) = session_id else {
        return Err(session_not_found(id));
    };
    let sessions = &endpoint.server.store_ref().sessions;
    let record = match sessions.load(&session_id).await {
        Ok(Some(record)) if head.is_from_owner(record.principal.as_ref()) => record,
        Ok(_) => return Err(session_not_found(id)),
        Err(error) => return Err(store_unavailable(endpoint, id, &error)),
    };
    match check_version(&record, head) {
        Ok(()) => Ok((session_id, record)),
        Err(error) => Err(responses::rpc_error(StatusCode::BAD_REQUEST, id, &error)),
    }
}

fn check_version(record: &SessionRecord, head: &RequestHead) -> Result<(), RpcError> {
    head.version.reject_duplicate()?;
    session::check_version(record, head.version())
}

/// Rejects a message without a session id.
pub(crate) fn missing_session_id(id: Option<&RequestId>) -> Response<ResponseBody> {
    responses::rpc_error(StatusCode::BAD_REQUEST, id, &session::session_required())
}

/// Rejects a session id that is unknown, expired, or belongs to another caller. The response is the same for all three.
pub(crate) fn session_not_found(id: Option<&RequestId>) -> Response<ResponseBody> {
    let error =
        RpcError::invalid_request("session not found; send `initialize` to start a new one");
    responses::rpc_error(StatusCode::NOT_FOUND, id, &error)
}

/// Responds with 503 when the session store failed.
pub(crate) fn store_unavailable(
    endpoint: &Endpoint,
    id: Option<&RequestId>,
    error: &StoreError,
) -> Response<ResponseBody> {
    endpoint.log_limiters.store_failed(error);
    responses::service_unavailable(id, "the session store is unavailable")
}
