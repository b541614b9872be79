//! Requests of HTTP that are not quite right.

use http::{HeaderValue, Method};
use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::mutant::{Mutant, Requesting};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.http.post", "a message by PUT")
            .in_revision(Revision::V2025_11_25)
            .requests(|requesting| {
                let body: Value =
                    serde_json::from_slice(requesting.request.body()).unwrap_or_default();
                if body["method"] == "ping" {
                    *requesting.request.method_mut() = Method::PUT;
                }
            }),
        Mutant::new("client.http.accept-both", "only JSON is accepted")
            .requests(|requesting| posts(requesting, "accept", "application/json")),
        Mutant::new("client.http.content-type", "the body is some text")
            .requests(|requesting| posts(requesting, "content-type", "text/plain")),
        Mutant::new("client.http.get-accept", "anything but events").requests(|requesting| {
            if requesting.request.method() == "GET" {
                set(requesting, "accept", "application/json");
            }
        }),
        Mutant::new("client.http.version-header", "no version").without("mcp-protocol-version"),
        Mutant::new("client.http.version-header-negotiated", "another version").requests(
            |requesting| {
                if requesting
                    .request
                    .headers()
                    .contains_key("mcp-protocol-version")
                {
                    set(requesting, "mcp-protocol-version", "2025-06-18");
                }
            },
        ),
        Mutant::new("client.http.version-header-always", "no version")
            .without("mcp-protocol-version"),
        Mutant::new("client.http.version-header-matches", "another version")
            .requests(|requesting| posts(requesting, "mcp-protocol-version", "2025-11-25")),
        Mutant::new("client.http.method-header", "no method").without("mcp-method"),
        Mutant::new("client.http.method-header", "another method").requests(|requesting| {
            if requesting.request.headers()["mcp-method"] == "tools/call" {
                set(requesting, "mcp-method", "tools/list");
            }
        }),
        Mutant::new("client.http.name-header", "no name").requests(|requesting| {
            if requesting
                .request
                .headers()
                .get("mcp-name")
                .is_some_and(|name| name == "hello")
            {
                requesting.request.headers_mut().remove("mcp-name");
            }
        }),
        Mutant::new("client.http.name-header-encoded", "raw bytes in a header").requests(
            |requesting| {
                if is(requesting, "mcp-name", "=?base64?Z3LDvMOfZQ==?=") {
                    let raw = HeaderValue::from_bytes("gr\u{fc}\u{df}e".as_bytes()).unwrap();
                    requesting.request.headers_mut().insert("mcp-name", raw);
                }
            },
        ),
        Mutant::new("client.http.param-headers", "no headers for arguments")
            .without("mcp-param-days"),
        Mutant::new("client.http.param-headers-encoded", "a space is lost").requests(
            |requesting| {
                if is(requesting, "mcp-param-city", "=?base64?IHBhZGRlZCA=?=") {
                    set(requesting, "mcp-param-city", "padded");
                }
            },
        ),
        Mutant::new("client.http.param-headers-absent", "null as a text").requests(|requesting| {
            if requesting.request.headers().contains_key("mcp-param-days") {
                set(requesting, "mcp-param-exact", "null");
            }
        }),
        Mutant::new("client.http.bad-marks-rejected", "whatever the marks are").hears(|message| {
            let Some(Value::Array(tools)) = message.pointer_mut("/result/tools") else {
                return;
            };
            for tool in tools
                .iter_mut()
                .filter(|tool| tool["name"] == "mislabelled")
            {
                tool["inputSchema"]["properties"] = serde_json::json!({});
            }
        }),
        Mutant::new("client.sessions.id-sent", "no session").without("mcp-session-id"),
        Mutant::new("client.sessions.restarted", "no other session").requests(|requesting| {
            let body: Value = serde_json::from_slice(requesting.request.body()).unwrap_or_default();
            if body["method"] == "initialize" {
                requesting.memory.count += 1;
                if requesting.memory.count > 1 {
                    requesting.answer = Some(500);
                }
            }
        }),
        Mutant::new("client.sessions.deleted", "it just goes").requests(|requesting| {
            if requesting.request.method() == "DELETE" {
                requesting.answer = Some(405);
            }
        }),
        Mutant::new("client.streams.read", "blind for streams").responses(|head| {
            let kind = head.headers.get("content-type");
            if kind.is_some_and(|kind| kind == "text/event-stream") {
                let plain = HeaderValue::from_static("text/plain");
                head.headers.insert("content-type", plain);
            }
        }),
        Mutant::new("client.streams.retry", "no patience").lines(|line| {
            match line.starts_with("retry: ") {
                true => "retry: 1".to_owned(),
                false => line.to_owned(),
            }
        }),
        Mutant::new("client.streams.fresh-id", "the id of what was lost").says(|saying| {
            let first_page = saying.message["params"].get("cursor").is_none();
            if saying.method() == "tools/list" && first_page {
                let own = saying.message["id"].clone();
                saying.message["id"] = saying.memory.message.get_or_insert(own).clone();
            }
        }),
        Mutant::new("client.streams.resumed", "it never comes back").requests(|requesting| {
            if requesting.request.headers().contains_key("last-event-id") {
                requesting.answer = Some(405);
            }
        }),
        Mutant::new("client.streams.not-resumed", "it goes on").requests(|requesting| {
            let body: Value = serde_json::from_slice(requesting.request.body()).unwrap_or_default();
            if body["method"] == "tools/list" {
                set(requesting, "last-event-id", "7");
            }
        }),
        Mutant::new("client.streams.http-sse-fallback", "it only looks").requests(|requesting| {
            if requesting.request.uri().path() == "/messages" {
                requesting.answer = Some(404);
            }
        }),
        Mutant::new("client.streams.endpoint", "without the query").requests(|requesting| {
            if requesting.request.uri().path() == "/messages" {
                *requesting.request.uri_mut() = "/messages".parse().unwrap();
            }
        }),
        Mutant::new("client.stdio.only-messages", "a word to the log").says(|saying| {
            if saying.method() == "tools/list" {
                saying.text = Some(format!("listing tools\n{}", saying.message));
            }
        }),
    ]
}

fn posts(requesting: &mut Requesting<'_>, name: &'static str, value: &'static str) {
    if requesting.request.method() == "POST" {
        set(requesting, name, value);
    }
}

fn set(requesting: &mut Requesting<'_>, name: &'static str, value: &'static str) {
    let headers = requesting.request.headers_mut();
    headers.insert(name, HeaderValue::from_static(value));
}

fn is(requesting: &Requesting<'_>, name: &str, value: &str) -> bool {
    let found = requesting.request.headers().get(name);
    found.is_some_and(|found| found == value)
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
