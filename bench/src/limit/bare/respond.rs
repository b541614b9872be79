//! From the bytes of a request to the bytes of its response, by the shortest path that serde offers.

use std::{borrow::Cow, sync::LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{list, steps::Steps};

/// The response to one message.
pub(crate) enum Reply<'a> {
    /// The whole response.
    One(Vec<u8>),
    /// Notifications, then the response.
    Steps(Steps<'a>),
}

/// Returns the response to one message; `None` for a notification.
pub(crate) fn respond(message: &[u8]) -> Option<Reply<'_>> {
    let request: Request<'_> = serde_json::from_slice(message).ok()?;
    let id = request.id?;
    if request.method == "tools/call" {
        return call(id, request.params?.get());
    }
    if request.method == "tools/list" {
        return Some(Reply::One(list::respond(id, request.params.is_some())));
    }
    let outcome = match &*request.method {
        "initialize" => INITIALIZE,
        "server/discover" => DISCOVER,
        "ping" => r#""result":{}"#,
        _ => r#""error":{"code":-32601,"message":"method not found"}"#,
    };
    let response = format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, id.get());
    Some(Reply::One(response.into_bytes()))
}

/// Returns whether a message opens a session; called only if the response may need a session id.
pub(crate) fn is_initialize(message: &[u8]) -> bool {
    serde_json::from_slice::<Request<'_>>(message)
        .is_ok_and(|request| request.method == "initialize")
}

const INITIALIZE: &str = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"0.1.0"}}"#;
const DISCOVER: &str = r#""result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"0.1.0"}}}"#;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: ToolResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    content: [Text<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'static RawValue>,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct Sum {
    sum: f64,
}

fn call<'a>(id: &'a RawValue, params: &'a str) -> Option<Reply<'a>> {
    let call: Call<'_> = serde_json::from_str(params).ok()?;
    let arguments = call.arguments?.get();
    let (text, structured_content) = match &*call.name {
        "echo" => (
            serde_json::from_str::<Echo<'_>>(arguments).ok()?.message,
            None,
        ),
        "add" => {
            let Add { a, b } = serde_json::from_str(arguments).ok()?;
            let sum = Sum { sum: a + b };
            (serde_json::to_string(&sum).ok()?.into(), Some(sum))
        }
        "announce" => ("told".into(), None),
        "steps" => return Some(Reply::Steps(Steps::parse(id, call.meta?.get())?)),
        _ => return None,
    };
    let modern = call.meta.is_some_and(|meta| is_modern(meta.get()));
    let result = ToolResult {
        result_type: modern.then_some("complete"),
        content: [Text {
            r#type: "text",
            text,
        }],
        structured_content,
        meta: modern.then(|| &**SERVER_META),
    };
    let response = Response {
        jsonrpc: "2.0",
        id,
        result,
    };
    Some(Reply::One(serde_json::to_vec(&response).ok()?))
}

/// Returns whether `_meta` contains a revision, as only in modern requests; most of them have it first.
fn is_modern(meta: &str) -> bool {
    const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion""#;
    meta.get(1..)
        .is_some_and(|members| members.starts_with(VERSION) || members.contains(VERSION))
}

/// The description of the server in every modern result; it never changes, so it is written once.
static SERVER_META: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let meta = r#"{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"0.1.0"}}"#;
    RawValue::from_string(meta.to_owned()).expect("the text above is JSON")
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{self, Era};

    fn text(message: &str) -> String {
        let Some(Reply::One(response)) = respond(message.as_bytes()) else {
            panic!("not a single response");
        };
        String::from_utf8(response).unwrap()
    }

    #[test]
    fn echo_responds_in_the_form_of_its_era() {
        let legacy = message::call(Era::Legacy, 7, "echo", r#"{"message":"a\nb"}"#);
        let modern = message::call(Era::Modern, 7, "echo", r#"{"message":"a\nb"}"#);

        assert_eq!(
            text(&legacy),
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\nb"}]}}"#
        );
        assert_eq!(
            text(&modern),
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\nb"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"0.1.0"}}}}"#
        );
    }

    #[test]
    fn a_progress_token_does_not_make_a_call_modern() {
        let call = |meta: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"_meta":{{{meta}}},"name":"echo","arguments":{{"message":"hi"}}}}}}"#
            )
        };
        let legacy = text(&call(r#""progressToken":7"#));
        let modern = text(&call(
            r#""progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28""#,
        ));

        assert!(!legacy.contains("resultType"), "{legacy}");
        assert!(modern.contains("resultType"), "{modern}");
    }

    #[test]
    fn add_returns_structured_content_and_text() {
        let body = message::call(Era::Legacy, 7, "add", r#"{"a":1,"b":2}"#);

        assert_eq!(
            text(&body),
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"sum\":3.0}"}],"structuredContent":{"sum":3.0}}}"#
        );
    }

    #[test]
    fn a_notification_gets_no_response() {
        assert!(respond(message::INITIALIZED.as_bytes()).is_none());
        assert!(is_initialize(message::INITIALIZE.as_bytes()));
    }
}
