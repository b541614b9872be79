//! Answers that come with a status that is no success.

use std::sync::Arc;

use bytes::Bytes;
use turnbuckle_protocol::{RequestId, RpcError};

use super::wire::Refusal;
use crate::{
    answer::{Answer, HttpFacts},
    error::{HttpRefusal, TransportError},
    hub::Hub,
    incoming::{self, Received},
    traffic::Direction,
};

/// Reads a refusal as the answer to a request, if it holds one.
pub(super) fn answer(
    refusal: Refusal,
    id: &RequestId,
    hub: &Arc<Hub>,
) -> Result<Answer, TransportError> {
    // How to authorize is said in headers; a body beside it only repeats that one has to.
    let error = match refusal.challenges.is_empty() {
        true => refusal.json.as_ref().and_then(|json| error(json, id, hub)),
        false => None,
    };
    match error {
        Some(error) => Ok(Answer {
            http: Some(HttpFacts {
                status: refusal.status,
                retry_after: refusal.retry_after,
            }),
            outcome: Err(error),
        }),
        None => Err(refused(refusal)),
    }
}

/// What callers see of a refusal.
pub(super) fn refused(refusal: Refusal) -> TransportError {
    let challenge = refusal.challenges.join(", ");
    TransportError::Refused(Box::new(HttpRefusal {
        status: refusal.status,
        retry_after: refusal.retry_after,
        challenge: Some(challenge).filter(|challenge| !challenge.is_empty()),
        excerpt: refusal.excerpt,
    }))
}

/// Finds the error that answers a request; one that names no request can mean no other.
fn error(json: &Bytes, id: &RequestId, hub: &Arc<Hub>) -> Option<RpcError> {
    hub.tap(Direction::Received, json);
    let mut found = None;
    incoming::read(json, |received| match received {
        Received::Answer {
            id: named,
            outcome: Err(error),
        } if named == *id => found = Some(error),
        Received::Complaint(error) => found = Some(error),
        _ => {}
    });
    found
}
