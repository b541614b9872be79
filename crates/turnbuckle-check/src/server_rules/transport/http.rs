//! HTTP methods, status codes and headers.

use serde_json::{Value, json};
use tokio::time::timeout;
use turnbuckle_protocol::revision::Revision;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Transcript, TranscriptEntry},
    },
    rule::{Area, Rule, Transports},
    server_rules::base::lifecycle_mixing::legacy,
    session::{ProbeResponse, Session},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("http.answer-kind", Area::Http, &["http.post.request-content-type"])
        .requirement("The response to a request is `application/json` or `text/event-stream`.")
        .hint("Set `Content-Type: application/json` for one message, `text/event-stream` for a stream.")
        .transports(Transports::Http)
        .passive(response_type),
    Rule::server(
        "http.notification-202",
        Area::Http,
        &["http.post.202", "http.post.202-modern", "http.post.reject-status"],
    )
    .requirement("The server responds to notifications and responses with 202 and an empty body, or with an error status.")
    .hint("Respond to accepted notifications and responses with 202 and an empty body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(notification(ctx))),
    Rule::server(
        "http.get",
        Area::Http,
        &["http.get.response", "http.endpoint.single-post-get"],
    )
    .requirement("The server responds to GET with an event stream or with 405.")
    .hint("Respond to GET on the endpoint with 405 if the server does not open a stream.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(get(ctx))),
    Rule::server("http.unknown-method-404", Area::Http, &["http.unknown-method.404"])
        .requirement("The server responds to an unknown method with HTTP status 404 and the error.")
        .hint("Send error -32601 with HTTP status 404.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(unknown_method(ctx))),
    Rule::server("http.version-header-400", Area::Http, &["http.version-header.400"])
        .requirement("The server responds with 400 to an invalid or unsupported `MCP-Protocol-Version`.")
        .hint("Compare `MCP-Protocol-Version` with the supported revisions, and respond with 400 to any other.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(version_rejected(ctx))),
    Rule::server("http.version-header-default", Area::Http, &["http.version-header.default"])
        .requirement("The server accepts a request without `MCP-Protocol-Version`.")
        .hint("Treat a missing `MCP-Protocol-Version` as the negotiated revision, or as 2025-03-26.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(version_missing(ctx))),
    Rule::server("http.modern-only-get", Area::Http, &["http.modern-only.get-delete"])
        .requirement("A server without legacy revisions responds with 405 to GET and DELETE.")
        .hint("Respond to GET and DELETE on the endpoint with 405.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(modern_get(ctx))),
    Rule::server(
        "http.modern-only-session",
        Area::Http,
        &["http.modern-only.session-ignore", "http.modern-only.last-event-id"],
    )
    .requirement("A server without legacy revisions ignores `Mcp-Session-Id` and `Last-Event-ID`.")
    .hint("Neither read nor send `Mcp-Session-Id`, and do not read `Last-Event-ID`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(modern_session(ctx))),
    Rule::server("http.accept-in-any-order", Area::Http, &[])
        .requirement("The server parses `Accept` as HTTP defines it: in any order, with parameters.")
        .hint("Look for both media types in the `Accept` list, instead of comparing the whole value.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(accept(ctx))),
    Rule::server("http.content-type-with-charset", Area::Http, &[])
        .requirement("The server accepts `Content-Type: application/json; charset=utf-8`.")
        .hint("Compare the media type without its parameters.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(charset(ctx))),
    Rule::server("http.content-type-checked", Area::Http, &[])
        .requirement("The server rejects a body with a `Content-Type` other than JSON.")
        .hint("Respond with 415 unless `Content-Type` is `application/json`: web pages can send other types to any origin.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(content_type(ctx))),
];

fn response_type(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (number, entry) in transcript.all() {
        let Some((sent, posted)) = posted_message(transcript, &entry) else {
            continue;
        };
        let Some(head) = entry.head.filter(|head| head.start_line == "200") else {
            continue;
        };
        let is_request = posted.get("id").is_some() && posted.get("method").is_some();
        if !is_request {
            continue;
        }
        let kind = head.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "application/json" | "text/event-stream" => evidence.extend([sent, number]),
            "" => {
                return Err(NotPassed::violation(
                    "a response without `Content-Type`",
                    [sent, number],
                ));
            }
            other => {
                return Err(NotPassed::violation(
                    format!("a response with `Content-Type: {other}`"),
                    [sent, number],
                ));
            }
        }
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

async fn notification(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    session.http()?;
    let params = json!({ "requestId": "turnbuckle-none", "reason": "a check" });
    session.notify("notifications/cancelled", params).await?;
    let mut evidence = Vec::new();
    for (number, entry) in ctx.transcript.all() {
        let Some((sent, posted)) = posted_message(&ctx.transcript, &entry) else {
            continue;
        };
        let Some(head) = &entry.head else { continue };
        let is_request = posted.get("id").is_some() && posted.get("method").is_some();
        if is_request || !posted.is_object() {
            continue;
        }
        let message = match posted["method"].as_str() {
            Some(method) => format!("`{method}`"),
            None => "a response".to_owned(),
        };
        match head.start_line.as_str() {
            "202" if entry.text.is_empty() => evidence.extend([sent, number]),
            "202" => {
                let observed = format!("202 with a body for {message}");
                return Err(NotPassed::violation(observed, [sent, number]));
            }
            status if status.starts_with(['4', '5']) => {}
            status => {
                let observed = format!("HTTP status {status} for {message}");
                let violation = NotPassed::violation(observed, [sent, number]);
                // A redirect is neither an acceptance nor an error.
                return Err(if status.starts_with('2') {
                    violation
                } else {
                    violation.for_requirement("http.post.reject-status")
                });
            }
        }
    }
    if evidence.is_empty() {
        return Err(NotPassed::not_tested("the server accepts no notifications"));
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

async fn get(ctx: &CheckContext) -> Outcome {
    // A server may allow one stream per session, and the shared session may already have one.
    let session = ctx.new_session().await?;
    let response_timeout = ctx.pace.response_timeout();
    let opening = get_stream_request(&session)?.send_within(2 * response_timeout);
    // The specification sets no time limit for the response headers of a stream without events.
    let Ok(response) = timeout(response_timeout, opening).await else {
        return Err(NotPassed::not_tested(format!(
            "no response to GET within {response_timeout:?}, before the first event"
        )));
    };
    let response = response?;
    match response.status {
        405 => Evidence::from_entries(response.entries()),
        200 if response.is_stream() => Evidence::from_entries(response.entries()),
        200 => {
            let observed = format!("200 with `Content-Type: {}`", response.content_type());
            Err(NotPassed::violation(observed, response.entries()))
        }
        status => Err(NotPassed::violation(
            format!("HTTP status {status}"),
            response.entries(),
        )),
    }
}

/// Builds a GET for the stream of a session.
pub(super) fn get_stream_request(
    session: &Session,
) -> Result<crate::wire::http::RawHttpRequest, NotPassed> {
    let headers = session
        .request_builder
        .headers(&Value::Null, session.id.as_deref());
    let raw_request = session.http()?.request("GET").headers(headers);
    Ok(raw_request
        .without("content-type")
        .header("accept", "text/event-stream"))
}

async fn unknown_method(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    session.http()?;
    let response = session
        .request("turnbuckle/no-such-method", json!({}))
        .await?;
    match (
        response.error().map_err(NotPassed::into_not_tested)?,
        response.status,
    ) {
        (-32601, Some(404)) => response.evidence(),
        (-32601, Some(status)) => Err(response.violation(format!("HTTP status {status}"))),
        (code, _) => Err(NotPassed::not_tested(format!(
            "the server returned error {code}"
        ))),
    }
}

async fn version_rejected(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut evidence = Vec::new();
    for version in ["1900-01-01", "turnbuckle"] {
        let raw_request = session.noop_request()?.deliberately_invalid();
        let response = session
            .send_raw(raw_request.header("mcp-protocol-version", version))
            .await?;
        if response.status != Some(400) {
            return Err(response.violation(format!("{} for `{version}`", status(&response))));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

async fn version_missing(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.without("mcp-protocol-version");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.value.get("result") {
        Some(_) => response.evidence(),
        // A missing header means 2025-03-26; a server that does not support it must respond with 400.
        None if response.status == Some(400) && !supports(ctx, Revision::V2025_03_26).await => {
            Err(NotPassed::not_applicable(
                "the server does not support 2025-03-26, the default revision",
            ))
        }
        None => Err(response.violation(format!("{}: {}", status(&response), response.describe()))),
    }
}

/// Returns whether the server negotiates a legacy revision.
async fn supports(ctx: &CheckContext, revision: Revision) -> bool {
    let Ok(mut session) = ctx.session_in(revision).await else {
        return false;
    };
    let started = session.initialize_session().await;
    let opening = session.opening.as_ref().filter(|_| started.is_ok());
    opening.is_some_and(|opening| opening.value["result"]["protocolVersion"] == revision.as_str())
}

async fn modern_get(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    require_modern_only(session)?;
    let mut evidence = Vec::new();
    for method in ["GET", "DELETE"] {
        let raw_request = session.http()?.request(method).deliberately_invalid();
        let response = raw_request
            .header("accept", "text/event-stream")
            .send()
            .await?;
        if response.status != 405 {
            require_no_handshake(ctx).await?;
            let observed = format!("HTTP status {} for {method}", response.status);
            return Err(NotPassed::violation(observed, response.entries()));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

async fn modern_session(ctx: &CheckContext) -> Outcome {
    // One header per request, so that a violation shows which one is not ignored.
    ignored_header(ctx, "mcp-session-id", "http.modern-only.session-ignore").await?;
    ignored_header(ctx, "last-event-id", "http.modern-only.last-event-id").await
}

async fn ignored_header(
    ctx: &CheckContext,
    name: &'static str,
    requirement: &'static str,
) -> Outcome {
    let session = ctx.session().await?;
    require_modern_only(session)?;
    let raw_request = session.noop_request()?.header(name, "turnbuckle-none");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    let has_session_id = response.header("mcp-session-id").is_some();
    if !has_session_id && response.value.get("result").is_some() {
        return response.evidence();
    }
    require_no_handshake(ctx).await?;
    if has_session_id {
        return Err(response.violation("the response has a session id"));
    }
    let observed = format!("{}: {}", status(&response), response.describe());
    Err(response.violation(observed).for_requirement(requirement))
}

async fn accept(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?;
    let kinds = "text/event-stream;q=0.9,application/json";
    let response = session
        .send_raw(raw_request.header("accept", kinds))
        .await?;
    check_accepted(&response, kinds)
}

async fn charset(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?;
    let kind = "application/json; charset=utf-8";
    let response = session
        .send_raw(raw_request.header("content-type", kind))
        .await?;
    check_accepted(&response, kind)
}

fn check_accepted(response: &ProbeResponse, header: &str) -> Outcome {
    match response.status {
        Some(200) => response.evidence(),
        _ => Err(response.violation(format!("{} for `{header}`", status(response)))),
    }
}

async fn content_type(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?.header("content-type", "text/plain");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    match response.status {
        Some(400..) => response.evidence(),
        _ => Err(response.violation(format!("{} for `text/plain`", status(&response)))),
    }
}

/// Returns the entry and the message of the POST of a response, unless it was deliberately invalid.
fn posted_message(transcript: &Transcript, entry: &TranscriptEntry) -> Option<(usize, Value)> {
    entry.head.as_ref()?;
    let sent = entry.response_to?;
    let request = transcript.entry(sent);
    let is_post = request.head.as_ref()?.start_line.starts_with("POST ");
    if is_post && !request.deliberately_invalid {
        Some((sent, request.json()?))
    } else {
        None
    }
}

/// Requires that the server lists no legacy revisions.
fn require_modern_only(session: &Session) -> Result<(), NotPassed> {
    let opening = session.opening.as_ref();
    let versions =
        opening.and_then(|response| response.value["result"]["supportedVersions"].as_array());
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
    let is_legacy = |version: &str| {
        version
            .parse::<Revision>()
            .is_ok_and(|one| !one.is_stateless())
    };
    if versions.any(is_legacy) {
        Err(NotPassed::not_applicable(
            "the server also supports legacy revisions",
        ))
    } else {
        Ok(())
    }
}

/// Requires that no session can be started: a server may support more revisions than it lists.
async fn require_no_handshake(ctx: &CheckContext) -> Result<(), NotPassed> {
    match legacy(ctx).await {
        Ok(_) => Err(NotPassed::not_applicable(
            "the server also supports legacy revisions",
        )),
        Err(_) => Ok(()),
    }
}

/// Describes the HTTP status.
pub(super) fn status(response: &ProbeResponse) -> String {
    match response.status {
        Some(status) => format!("HTTP status {status}"),
        None => "no HTTP status".to_owned(),
    }
}
