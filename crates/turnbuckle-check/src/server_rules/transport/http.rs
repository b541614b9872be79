//! Methods, status codes and headers of HTTP.

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
        .requirement("A request is answered with `application/json` or with `text/event-stream`.")
        .fix("Set `Content-Type: application/json` for one message, `text/event-stream` for a stream.")
        .transports(Transports::Http)
        .passive(answer_kind),
    Rule::server(
        "http.notification-202",
        Area::Http,
        &["http.post.202", "http.post.202-modern", "http.post.reject-status"],
    )
    .requirement("What is no request is answered with 202 and nothing else, or with an error status.")
    .fix("Answer notifications and responses that are accepted with 202 and an empty body.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(notification(ctx))),
    Rule::server(
        "http.get",
        Area::Http,
        &["http.get.response", "http.endpoint.single-post-get"],
    )
    .requirement("GET opens a stream of events, or is answered with 405.")
    .fix("Answer GET on the endpoint with 405 if there is no stream for it.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(get(ctx))),
    Rule::server("http.unknown-method-404", Area::Http, &["http.unknown-method.404"])
        .requirement("A method that is not there is answered with the status 404 beside its error.")
        .fix("Answer -32601 with the status 404.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(unknown_method(ctx))),
    Rule::server("http.version-header-400", Area::Http, &["http.version-header.400"])
        .requirement("A protocol version in the header that is none, or is not supported, is answered with 400.")
        .fix("Compare `MCP-Protocol-Version` with the revisions that are served, and answer any other with 400.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(version_refused(ctx))),
    Rule::server("http.version-header-default", Area::Http, &["http.version-header.default"])
        .requirement("A request without `MCP-Protocol-Version` is answered all the same.")
        .fix("Take a missing `MCP-Protocol-Version` for what was agreed upon, or for 2025-03-26.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(version_missing(ctx))),
    Rule::server("http.modern-only-get", Area::Http, &["http.modern-only.get-delete"])
        .requirement("GET and DELETE are answered with 405 where no revision with sessions is served.")
        .fix("Answer GET and DELETE on the endpoint with 405.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(modern_get(ctx))),
    Rule::server(
        "http.modern-only-session",
        Area::Http,
        &["http.modern-only.session-ignore", "http.modern-only.last-event-id"],
    )
    .requirement("`Mcp-Session-Id` and `Last-Event-ID` are ignored where no revision with sessions is served.")
    .fix("Neither read nor send `Mcp-Session-Id`, and do not read `Last-Event-ID`.")
    .transports(Transports::Http)
    .active(|ctx| Box::pin(modern_session(ctx))),
    Rule::server("http.accept-in-any-order", Area::Http, &[])
        .requirement("`Accept` is read as HTTP has it: in any order, with parameters.")
        .fix("Look for both kinds in the list that `Accept` is, rather than for one exact text.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(accept(ctx))),
    Rule::server("http.content-type-with-charset", Area::Http, &[])
        .requirement("`Content-Type: application/json; charset=utf-8` is JSON too.")
        .fix("Compare the kind of the content without its parameters.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(charset(ctx))),
    Rule::server("http.content-type-checked", Area::Http, &[])
        .requirement("A body that does not say that it is JSON is refused.")
        .fix("Answer with 415 unless `Content-Type` is `application/json`: web pages can send other kinds anywhere.")
        .transports(Transports::Http)
        .active(|ctx| Box::pin(content_type(ctx))),
];

fn answer_kind(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (number, entry) in transcript.all() {
        let Some((sent, asked)) = responded(transcript, &entry) else {
            continue;
        };
        let Some(head) = entry.head.filter(|head| head.start_line == "200") else {
            continue;
        };
        let is_request = asked.get("id").is_some() && asked.get("method").is_some();
        if !is_request {
            continue;
        }
        let kind = head.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "application/json" | "text/event-stream" => evidence.extend([sent, number]),
            "" => {
                return Err(NotPassed::violation(
                    "an answer without `Content-Type`",
                    [sent, number],
                ));
            }
            other => {
                return Err(NotPassed::violation(
                    format!("an answer of the kind `{other}`"),
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
        let Some((sent, asked)) = responded(&ctx.transcript, &entry) else {
            continue;
        };
        let Some(head) = &entry.head else { continue };
        let is_request = asked.get("id").is_some() && asked.get("method").is_some();
        if is_request || !asked.is_object() {
            continue;
        }
        let observed = match asked["method"].as_str() {
            Some(method) => format!("`{method}`"),
            None => "a response".to_owned(),
        };
        match head.start_line.as_str() {
            "202" if entry.text.is_empty() => evidence.extend([sent, number]),
            "202" => {
                let observed = format!("{observed} is answered with 202 and a body");
                return Err(NotPassed::violation(observed, [sent, number]));
            }
            status if status.starts_with(['4', '5']) => {}
            status => {
                let observed = format!("{observed} is answered with the status {status}");
                return Err(NotPassed::violation(observed, [sent, number]));
            }
        }
    }
    if evidence.is_empty() {
        return Err(NotPassed::not_tested("the server accepts no notification"));
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

async fn get(ctx: &CheckContext) -> Outcome {
    // A server may allow one stream for each session, and the shared one may have its own.
    let session = ctx.new_session().await?;
    let response_timeout = ctx.options.response_timeout;
    let opening = stream(&session)?.send_within(2 * response_timeout);
    // A stream may have nothing to say, and nobody says when it has to begin.
    let Ok(reply) = timeout(response_timeout, opening).await else {
        return Err(NotPassed::not_tested(format!(
            "GET is not answered within {response_timeout:?}, before there is an event"
        )));
    };
    let reply = reply?;
    match reply.status {
        405 => Evidence::from_entries(reply.entries()),
        200 if reply.is_stream() => Evidence::from_entries(reply.entries()),
        200 => {
            let observed = format!("200 with the kind `{}`", reply.content_type());
            Err(NotPassed::violation(observed, reply.entries()))
        }
        status => Err(NotPassed::violation(
            format!("the status {status}"),
            reply.entries(),
        )),
    }
}

/// Makes up a GET for the stream of a session.
pub(super) fn stream(session: &Session) -> Result<crate::wire::http::RawHttpRequest, NotPassed> {
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
        response.error().map_err(NotPassed::as_not_tested)?,
        response.status,
    ) {
        (-32601, Some(404)) => response.evidence(),
        (-32601, Some(status)) => Err(response.violation(format!("the status {status}"))),
        (code, _) => Err(NotPassed::not_tested(format!("the error is {code}"))),
    }
}

async fn version_refused(ctx: &CheckContext) -> Outcome {
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
        // Without the header 2025-03-26 is meant, and whoever does not serve that has to refuse it with 400.
        None if response.status == Some(400) && !speaks(ctx, Revision::V2025_03_26).await => Err(
            NotPassed::not_applicable("the server does not serve 2025-03-26, which is meant then"),
        ),
        None => Err(response.violation(format!("{}: {}", status(&response), response.describe()))),
    }
}

/// Says whether the server agrees to speak a revision with a handshake.
async fn speaks(ctx: &CheckContext, revision: Revision) -> bool {
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
        let reply = raw_request
            .header("accept", "text/event-stream")
            .send()
            .await?;
        if reply.status != 405 {
            without_handshake(ctx).await?;
            let observed = format!("{method} is answered with {}", reply.status);
            return Err(NotPassed::violation(observed, reply.entries()));
        }
        evidence.extend(reply.entries());
    }
    Evidence::from_entries(evidence)
}

async fn modern_session(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    require_modern_only(session)?;
    let raw_request = session
        .noop_request()?
        .header("mcp-session-id", "turnbuckle-none")
        .header("last-event-id", "turnbuckle-none");
    let response = session.send_raw(raw_request.deliberately_invalid()).await?;
    if response.header("mcp-session-id").is_some() || response.value.get("result").is_none() {
        without_handshake(ctx).await?;
    }
    if response.header("mcp-session-id").is_some() {
        return Err(response.violation("the answer has a session id"));
    }
    match response.value.get("result") {
        Some(_) => response.evidence(),
        None => Err(response.violation(format!("{}: {}", status(&response), response.describe()))),
    }
}

async fn accept(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?;
    let kinds = "text/event-stream;q=0.9,application/json";
    let response = session
        .send_raw(raw_request.header("accept", kinds))
        .await?;
    understood(&response, kinds)
}

async fn charset(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let raw_request = session.noop_request()?;
    let kind = "application/json; charset=utf-8";
    let response = session
        .send_raw(raw_request.header("content-type", kind))
        .await?;
    understood(&response, kind)
}

fn understood(response: &ProbeResponse, header: &str) -> Outcome {
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

/// Returns the entry and the message that a response answers, if nothing was wrong with it on purpose.
fn responded(transcript: &Transcript, entry: &TranscriptEntry) -> Option<(usize, Value)> {
    entry.head.as_ref()?;
    let sent = entry.response_to?;
    let asked = transcript.entry(sent);
    let posted = asked.head.as_ref()?.start_line.starts_with("POST ");
    if posted && !asked.deliberately_invalid {
        Some((sent, asked.json()?))
    } else {
        None
    }
}

/// Makes sure that the server has no revision with a handshake.
fn require_modern_only(session: &Session) -> Result<(), NotPassed> {
    let opening = session.opening.as_ref();
    let versions =
        opening.and_then(|response| response.value["result"]["supportedVersions"].as_array());
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
    let older = |version: &str| {
        version
            .parse::<Revision>()
            .is_ok_and(|one| one < Revision::MODERN)
    };
    if versions.any(older) {
        Err(NotPassed::not_applicable(
            "the server serves revisions with sessions too",
        ))
    } else {
        Ok(())
    }
}

/// Makes sure that nobody can begin a session: a server may serve more than it lists.
async fn without_handshake(ctx: &CheckContext) -> Result<(), NotPassed> {
    match legacy(ctx).await {
        Ok(_) => Err(NotPassed::not_applicable(
            "the server serves revisions with sessions too",
        )),
        Err(_) => Ok(()),
    }
}

/// Says the status in words.
pub(super) fn status(response: &ProbeResponse) -> String {
    match response.status {
        Some(status) => format!("the status {status}"),
        None => "no status".to_owned(),
    }
}
