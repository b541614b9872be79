//! HTTP mutants.

use http::{HeaderValue, Method};
use serde_json::Value;
use turnbuckle_protocol::revision::Revision;

use super::mutant::{Mutant, OutgoingRequest};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("client.http.post", "a message by PUT")
            .for_requirement("http.post.every-message")
            .in_revision(Revision::V2025_11_25)
            .requests(|outgoing_request| {
                let body: Value =
                    serde_json::from_slice(outgoing_request.request.body()).unwrap_or_default();
                if body["method"] == "ping" {
                    *outgoing_request.request.method_mut() = Method::PUT;
                }
            }),
        Mutant::new("client.http.accept-both", "only JSON is accepted")
            .requests(|outgoing_request| posts(outgoing_request, "accept", "application/json")),
        Mutant::new("client.http.content-type", "a plain text body")
            .requests(|outgoing_request| posts(outgoing_request, "content-type", "text/plain")),
        Mutant::new("client.http.get-accept", "does not accept events").requests(
            |outgoing_request| {
                if outgoing_request.request.method() == "GET" {
                    set(outgoing_request, "accept", "application/json");
                }
            },
        ),
        Mutant::new("client.http.version-header", "no version").without("mcp-protocol-version"),
        Mutant::new("client.http.version-header-negotiated", "another version").requests(
            |outgoing_request| {
                if outgoing_request
                    .request
                    .headers()
                    .contains_key("mcp-protocol-version")
                {
                    set(outgoing_request, "mcp-protocol-version", "2025-06-18");
                }
            },
        ),
        Mutant::new("client.http.version-header-always", "no version")
            .without("mcp-protocol-version"),
        Mutant::new("client.http.version-header-matches", "another version").requests(
            |outgoing_request| posts(outgoing_request, "mcp-protocol-version", "2025-11-25"),
        ),
        Mutant::new("client.http.method-header", "no method").without("mcp-method"),
        Mutant::new("client.http.method-header", "another method").requests(|outgoing_request| {
            if outgoing_request.request.headers()["mcp-method"] == "tools/call" {
                set(outgoing_request, "mcp-method", "tools/list");
            }
        }),
        Mutant::new("client.http.name-header", "no name")
            .for_requirement("http.header.mcp-name")
            .requests(|outgoing_request| {
                if outgoing_request
                    .request
                    .headers()
                    .get("mcp-name")
                    .is_some_and(|name| name == "hello")
                {
                    outgoing_request.request.headers_mut().remove("mcp-name");
                }
            }),
        Mutant::new("client.http.name-header-encoded", "raw bytes in a header")
            .for_requirement("http.header.mcp-name-encode")
            .requests(|outgoing_request| {
                if is(outgoing_request, "mcp-name", "=?base64?Z3LDvMOfZQ==?=") {
                    let raw = HeaderValue::from_bytes("gr\u{fc}\u{df}e".as_bytes()).unwrap();
                    outgoing_request
                        .request
                        .headers_mut()
                        .insert("mcp-name", raw);
                }
            }),
        Mutant::new("client.http.param-headers", "no headers for arguments")
            .for_requirement("http.param.present")
            .without("mcp-param-days"),
        Mutant::new("client.http.param-headers", "another number in a header")
            .for_requirement("http.value.types")
            .requests(|outgoing_request| {
                let headers = outgoing_request.request.headers();
                if headers.contains_key("mcp-param-days") {
                    set(outgoing_request, "mcp-param-days", "3e0");
                }
            }),
        Mutant::new("client.http.param-headers-encoded", "trims a space")
            .for_requirement("http.value.encode")
            .requests(|outgoing_request| {
                if is(
                    outgoing_request,
                    "mcp-param-city",
                    "=?base64?IHBhZGRlZCA=?=",
                ) {
                    set(outgoing_request, "mcp-param-city", "padded");
                }
            }),
        Mutant::new("client.http.param-headers-absent", "null as a string")
            .for_requirement("http.param.null-omit")
            .requests(|outgoing_request| {
                if outgoing_request
                    .request
                    .headers()
                    .contains_key("mcp-param-days")
                {
                    set(outgoing_request, "mcp-param-exact", "null");
                }
            }),
        Mutant::new(
            "client.http.bad-marks-rejected",
            "ignores invalid annotations",
        )
        .map_received(|message| {
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
        Mutant::new("client.sessions.restarted", "starts no new session").requests(
            |outgoing_request| {
                let body: Value =
                    serde_json::from_slice(outgoing_request.request.body()).unwrap_or_default();
                if body["method"] == "initialize" {
                    outgoing_request.state.count += 1;
                    if outgoing_request.state.count > 1 {
                        outgoing_request.response = Some(500);
                    }
                }
            },
        ),
        Mutant::new("client.sessions.deleted", "disconnects without DELETE").requests(
            |outgoing_request| {
                if outgoing_request.request.method() == "DELETE" {
                    outgoing_request.response = Some(405);
                }
            },
        ),
        Mutant::new("client.streams.read", "ignores streams")
            .for_requirement("http.post.client-both")
            .responses(|head| {
                let kind = head.headers.get("content-type");
                if kind.is_some_and(|kind| kind == "text/event-stream") {
                    let plain = HeaderValue::from_static("text/plain");
                    head.headers.insert("content-type", plain);
                }
            }),
        Mutant::new("client.streams.retry", "no patience").lines(|line| {
            if line.starts_with("retry: ") {
                "retry: 1".to_owned()
            } else {
                line.to_owned()
            }
        }),
        Mutant::new(
            "client.streams.fresh-id",
            "reuses the id of the lost request",
        )
        .map_sent(|outgoing| {
            let first_page = outgoing.message["params"].get("cursor").is_none();
            if outgoing.method() == "tools/list" && first_page {
                let own = outgoing.message["id"].clone();
                outgoing.message["id"] = outgoing.state.message.get_or_insert(own).clone();
            }
        }),
        Mutant::new("client.streams.resumed", "never reconnects")
            .for_requirement("http.resume.client-get")
            .requests(|outgoing_request| {
                if outgoing_request
                    .request
                    .headers()
                    .contains_key("last-event-id")
                {
                    outgoing_request.response = Some(405);
                }
            }),
        Mutant::new("client.streams.not-resumed", "resumes the stream").requests(
            |outgoing_request| {
                let body: Value =
                    serde_json::from_slice(outgoing_request.request.body()).unwrap_or_default();
                if body["method"] == "tools/list" {
                    set(outgoing_request, "last-event-id", "7");
                }
            },
        ),
        Mutant::new(
            "client.streams.http-sse-fallback",
            "opens the stream without a POST",
        )
        .requests(|outgoing_request| {
            if outgoing_request.request.uri().path() == "/messages" {
                outgoing_request.response = Some(404);
            }
        }),
        Mutant::new("client.streams.endpoint", "without the query").requests(|outgoing_request| {
            if outgoing_request.request.uri().path() == "/messages" {
                *outgoing_request.request.uri_mut() = "/messages".parse().unwrap();
            }
        }),
        Mutant::new("client.stdio.only-messages", "a log line")
            .for_requirement("stdio.stdin.only-mcp")
            .map_sent(|outgoing| {
                if outgoing.method() == "tools/list" {
                    outgoing.text = Some(format!("listing tools\n{}", outgoing.message));
                }
            }),
    ]
}

fn posts(outgoing_request: &mut OutgoingRequest<'_>, name: &'static str, value: &'static str) {
    if outgoing_request.request.method() == "POST" {
        set(outgoing_request, name, value);
    }
}

fn set(outgoing_request: &mut OutgoingRequest<'_>, name: &'static str, value: &'static str) {
    let headers = outgoing_request.request.headers_mut();
    headers.insert(name, HeaderValue::from_static(value));
}

fn is(outgoing_request: &OutgoingRequest<'_>, name: &str, value: &str) -> bool {
    let found = outgoing_request.request.headers().get(name);
    found.is_some_and(|found| found == value)
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
