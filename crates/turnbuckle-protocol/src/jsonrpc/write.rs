//! Writes messages, each on one line.

use serde::Serialize;

use super::{RequestId, RpcError};

/// Appends a response with a result that is already JSON.
pub fn write_result(out: &mut Vec<u8>, id: &RequestId, result_json: &[u8]) {
    out.reserve(result_json.len() + 48);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.extend_from_slice(br#","result":"#);
    let start = out.len();
    out.extend_from_slice(result_json);
    join_lines(&mut out[start..]);
    out.push(b'}');
}

/// Appends an error response; without an id the member is omitted.
pub fn write_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.extend_from_slice(br#","id":"#);
        id.write(out);
    }
    finish_error(out, error);
}

/// Appends an error response with `"id":null`, as JSON-RPC requires if the id could not be read.
pub fn write_error_with_null_id(out: &mut Vec<u8>, error: &RpcError) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":null"#);
    finish_error(out, error);
}

/// Appends a request. If the parameters cannot be serialized, `out` is unchanged.
pub fn write_request(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: &impl Serialize,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(out);
    out.push(b',');
    finish_call(out, start, method, params)
}

/// Appends a notification. If the parameters cannot be serialized, `out` is unchanged.
pub fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: &impl Serialize,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    finish_call(out, start, method, params)
}

fn finish_error(out: &mut Vec<u8>, error: &RpcError) {
    out.extend_from_slice(br#","error":"#);
    serde_json::to_writer(&mut *out, error)
        .expect("numbers, strings and JSON values can be serialized");
    out.push(b'}');
}

/// Writes method and parameters; parameters that serialize to `null`, such as `()`, are omitted.
fn finish_call(
    out: &mut Vec<u8>,
    start: usize,
    method: &str,
    params: &impl Serialize,
) -> Result<(), serde_json::Error> {
    let written = (|| {
        out.extend_from_slice(br#""method":"#);
        serde_json::to_writer(&mut *out, method)?;
        let before = out.len();
        out.extend_from_slice(br#","params":"#);
        let value = out.len();
        serde_json::to_writer(&mut *out, params)?;
        if &out[value..] == b"null" {
            out.truncate(before);
        } else {
            join_lines(&mut out[value..]);
        }
        out.push(b'}');
        Ok(())
    })();
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Replaces line ends by spaces; in JSON they occur only between tokens.
fn join_lines(json: &mut [u8]) {
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &json[from..]) {
        json[from + found] = b' ';
        from += found + 1;
    }
}
