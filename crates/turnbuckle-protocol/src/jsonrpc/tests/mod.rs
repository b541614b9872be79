//! The envelope, row by row.

mod answers;
mod batch;
mod calls;
mod ids;
mod json;
mod params;
mod write;

use super::{Incoming, Malformed, Message, Request, RequestId, parse};

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

fn malformed(json: impl AsRef<[u8]>) -> Malformed {
    match parse(json.as_ref()) {
        Err(malformed) => malformed,
        Ok(incoming) => panic!("accepted: {incoming:?}"),
    }
}

/// The code that a refused message gets, and the id it is answered with.
fn refusal(json: impl AsRef<[u8]>) -> (i64, Option<RequestId>) {
    let malformed = malformed(json);
    (malformed.error.code, malformed.id)
}
