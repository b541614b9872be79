//! The session that a request names.

use std::sync::Arc;

use ::http::{Response, StatusCode};
use turnbuckle_protocol::{RequestId, RpcError};
use turnbuckle_store::{SessionId, SessionRecord, StoreError};

use super::{
    body::Body,
    endpoint::{Endpoint, Head},
    link::Link,
    mirror::MCP_SESSION_ID,
    presence::Present,
    refusal,
};
use crate::lifecycle::{Rules, session};

/// A session that exists and belongs to whoever sent the request.
pub(super) struct Known {
    pub(super) id: SessionId,
    pub(super) record: Arc<SessionRecord>,
}

impl Known {
    pub(super) fn rules(&self) -> &'static Rules {
        session::rules(&self.record)
    }

    /// Makes the session present in this process.
    pub(super) fn enter(&self, endpoint: &Arc<Endpoint>, link: &Link) -> Present {
        link.enter(endpoint, self.id)
    }
}

/// Finds the session that a request names, and sees whether both belong together.
pub(super) async fn find(
    endpoint: &Endpoint,
    head: &Head,
    id: Option<&RequestId>,
) -> Result<Known, Response<Body>> {
    let mut named = head.headers.get_all(MCP_SESSION_ID).iter();
    let (Some(session), None) = (named.next(), named.next()) else {
        return Err(needed(id));
    };
    let session: Option<SessionId> = session.to_str().ok().and_then(|text| text.parse().ok());
    let Some(session) = session else {
        return Err(unknown(id));
    };
    let sessions = &endpoint.server.store_ref().sessions;
    let record = match sessions.load(&session).await {
        Ok(Some(record)) if head.is_from(record.principal.as_ref()) => record,
        Ok(_) => return Err(unknown(id)),
        Err(error) => return Err(unavailable(endpoint, id, &error)),
    };
    match check_version(&record, head) {
        Ok(()) => Ok(Known {
            id: session,
            record,
        }),
        Err(error) => Err(refusal::error(StatusCode::BAD_REQUEST, id, &error)),
    }
}

fn check_version(record: &SessionRecord, head: &Head) -> Result<(), RpcError> {
    head.version.check_one()?;
    session::check_version(record, head.version())
}

/// Refuses a message that names no session.
pub(super) fn needed(id: Option<&RequestId>) -> Response<Body> {
    refusal::error(StatusCode::BAD_REQUEST, id, &session::session_needed())
}

/// Refuses a session that is over, or is someone else's, or never was: nobody learns which.
pub(super) fn unknown(id: Option<&RequestId>) -> Response<Body> {
    let error = RpcError::invalid_request("there is no such session; begin with `initialize`");
    refusal::error(StatusCode::NOT_FOUND, id, &error)
}

/// Asks the client to come back when the store does.
pub(super) fn unavailable(
    endpoint: &Endpoint,
    id: Option<&RequestId>,
    error: &StoreError,
) -> Response<Body> {
    endpoint.logs.store_failed(error);
    refusal::busy(id, "sessions cannot be read at the moment")
}
