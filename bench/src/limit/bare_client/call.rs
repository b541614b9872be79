//! The bytes of a call, and the text in the bytes of its response.

use std::{borrow::Cow, sync::LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Failure, message::Era};

/// Writes a call of `echo`.
pub(crate) fn write(era: Era, id: u64, message: &str) -> Result<Vec<u8>, Failure> {
    let meta = match era {
        Era::Legacy => None,
        Era::Modern => Some(&**META),
    };
    Ok(serde_json::to_vec(&Request {
        jsonrpc: "2.0",
        id,
        method: "tools/call",
        params: Params {
            name: "echo",
            arguments: Arguments { message },
            meta,
        },
    })?)
}

/// Reads the id and the text of a response.
pub(crate) fn read(bytes: &[u8]) -> Result<(u64, Cow<'_, str>), Failure> {
    let response: Response<'_> = serde_json::from_slice(bytes)?;
    let [content] = response.result.content;
    Ok((response.id, content.text))
}

/// The description of the client in every modern request; it never changes, so it is written once.
static META: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    RawValue::from_string(meta.to_owned()).expect("the text above is JSON")
});

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Serialize)]
struct Params<'a> {
    name: &'static str,
    arguments: Arguments<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'static RawValue>,
}

#[derive(Serialize)]
struct Arguments<'a> {
    message: &'a str,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: u64,
    #[serde(borrow)]
    result: Outcome<'a>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    content: [Text<'a>; 1],
}

#[derive(Deserialize)]
struct Text<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message;

    #[test]
    fn a_call_has_the_bytes_that_every_bench_sends() {
        for era in [Era::Legacy, Era::Modern] {
            let written = String::from_utf8(write(era, 7, "hi").unwrap()).unwrap();

            assert_eq!(
                written,
                message::call(era, 7, "echo", r#"{"message":"hi"}"#)
            );
        }
    }

    #[test]
    fn the_text_is_found_in_a_response() {
        let response = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\nb"}],"resultType":"complete"}}"#;

        let (id, text) = read(response.as_bytes()).unwrap();

        assert_eq!((id, &*text), (7, "a\nb"));
        assert!(read(br#"{"jsonrpc":"2.0","id":7,"error":{}}"#).is_err());
    }
}
