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
    pub(super) async fn enter(&self, endpoint: &Arc<Endpoint>, link: &Link) -> Present {
        let present = link.enter(endpoint, self.id);
        // Whether a client with a quiet start got an answer is known only here.
        if self.rules().quiet_start && present.keep() {
            Box::pin(self.end_if_over(endpoint)).await;
        }
        present
    }

    /// Whoever ends the session from now on finds what is kept. It may have ended before, though.
    async fn end_if_over(&self, endpoint: &Endpoint) {
        let sessions = &endpoint.server.store_ref().sessions;
        if let Ok(None) = sessions.load(&self.id).await {
            endpoint.presences.close(&self.id);
        }
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

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::Revision;
    use turnbuckle_store::ClientProfile;

    use super::*;
    use crate::{Server, http::Options};

    #[tokio::test]
    async fn nothing_is_kept_of_a_session_that_ended_meanwhile() {
        let server = Server::new("test", "1.0.0");
        let endpoint = Arc::new(Endpoint::new(server, Options::default(), None));
        let record = SessionRecord::new(None, Revision::V2024_11_05, ClientProfile::default());
        let sessions = &endpoint.server.store_ref().sessions;
        let id = sessions.create(record.clone()).await.unwrap();
        let known = Known {
            id,
            record: Arc::new(record),
        };

        drop(known.enter(&endpoint, &Link::default()).await);
        assert_eq!(endpoint.presences.len(), 1, "kept while there is a session");
        sessions.remove(&id).await.unwrap();
        endpoint.presences.close(&id);
        drop(known.enter(&endpoint, &Link::default()).await);

        assert_eq!(endpoint.presences.len(), 0);
    }
}
