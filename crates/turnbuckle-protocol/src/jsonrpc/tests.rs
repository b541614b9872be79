//! Tests of the envelope.

mod batch;
mod calls;
mod ids;
mod json;
mod params;
mod responses;
mod write;

use super::{Incoming, MalformedMessage, Message, Request, RequestId, parse};

fn one(json: &str) -> Message<'_> {
    match parse(json.as_bytes()) {
        Ok(Incoming::One(message)) => message,
        other => panic!("not one message: {other:?}"),
    }
}

fn request(json: &str) -> Request<'_> {
    match one(json) {
        Message::Request(request) => request,
        other => panic!("not a request: {other:?}"),
    }
}

fn malformed(json: impl AsRef<[u8]>) -> MalformedMessage {
    match parse(json.as_ref()) {
        Err(malformed) => malformed,
        Ok(incoming) => panic!("accepted: {incoming:?}"),
    }
}

/// Returns the error code of a rejected message, and the id of the error response.
fn rejection(json: impl AsRef<[u8]>) -> (i64, Option<RequestId>) {
    let malformed = malformed(json);
    (malformed.error.code, malformed.id)
}
