//! Methods, status codes and headers of HTTP.

use serde_json::{Value, json};
use tokio::time::timeout;
use turnbuckle_protocol::revision::Revision;

use super::eras::legacy;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Session};
use crate::tape::{Entry, Tape};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("http.answer-kind", Area::Http, &["http.post.request-content-type"])
        .says("A request is answered with `application/json` or with `text/event-stream`.")
        .cure("Set `Content-Type: application/json` for one message, `text/event-stream` for a stream.")
        .on(On::Http)
        .look(answer_kind),
    Rule::server(
        "http.notification-202",
        Area::Http,
        &["http.post.202", "http.post.202-modern", "http.post.reject-status"],
    )
    .says("What is no request is answered with 202 and nothing else, or with an error status.")
    .cure("Answer notifications and responses that are accepted with 202 and an empty body.")
    .on(On::Http)
    .ask(|visit| Box::pin(notification(visit))),
    Rule::server(
        "http.get",
        Area::Http,
        &["http.get.response", "http.endpoint.single-post-get"],
    )
    .says("GET opens a stream of events, or is answered with 405.")
    .cure("Answer GET on the endpoint with 405 if there is no stream for it.")
    .on(On::Http)
    .ask(|visit| Box::pin(get(visit))),
    Rule::server("http.unknown-method-404", Area::Http, &["http.unknown-method.404"])
        .says("A method that is not there is answered with the status 404 beside its error.")
        .cure("Answer -32601 with the status 404.")
        .on(On::Http)
        .ask(|visit| Box::pin(unknown_method(visit))),
    Rule::server("http.version-header-400", Area::Http, &["http.version-header.400"])
        .says("A protocol version in the header that is none, or is not supported, is answered with 400.")
        .cure("Compare `MCP-Protocol-Version` with the revisions that are served, and answer any other with 400.")
        .on(On::Http)
        .ask(|visit| Box::pin(version_refused(visit))),
    Rule::server("http.version-header-default", Area::Http, &["http.version-header.default"])
        .says("A request without `MCP-Protocol-Version` is answered all the same.")
        .cure("Take a missing `MCP-Protocol-Version` for what was agreed upon, or for 2025-03-26.")
        .on(On::Http)
        .ask(|visit| Box::pin(version_missing(visit))),
    Rule::server("http.modern-only-get", Area::Http, &["http.modern-only.get-delete"])
        .says("GET and DELETE are answered with 405 where no revision with sessions is served.")
        .cure("Answer GET and DELETE on the endpoint with 405.")
        .on(On::Http)
        .ask(|visit| Box::pin(modern_get(visit))),
    Rule::server(
        "http.modern-only-session",
        Area::Http,
        &["http.modern-only.session-ignore", "http.modern-only.last-event-id"],
    )
    .says("`Mcp-Session-Id` and `Last-Event-ID` are ignored where no revision with sessions is served.")
    .cure("Neither read nor send `Mcp-Session-Id`, and do not read `Last-Event-ID`.")
    .on(On::Http)
    .ask(|visit| Box::pin(modern_session(visit))),
    Rule::server("http.accept-in-any-order", Area::Http, &[])
        .says("`Accept` is read as HTTP has it: in any order, with parameters.")
        .cure("Look for both kinds in the list that `Accept` is, rather than for one exact text.")
        .on(On::Http)
        .ask(|visit| Box::pin(accept(visit))),
    Rule::server("http.content-type-with-charset", Area::Http, &[])
        .says("`Content-Type: application/json; charset=utf-8` is JSON too.")
        .cure("Compare the kind of the content without its parameters.")
        .on(On::Http)
        .ask(|visit| Box::pin(charset(visit))),
    Rule::server("http.content-type-checked", Area::Http, &[])
        .says("A body that does not say that it is JSON is refused.")
        .cure("Answer with 415 unless `Content-Type` is `application/json`: web pages can send other kinds anywhere.")
        .on(On::Http)
        .ask(|visit| Box::pin(content_type(visit))),
];

fn answer_kind(_: &Visit, tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for (number, entry) in tape.all() {
        let Some((sent, asked)) = answered(tape, &entry) else {
            continue;
        };
        let Some(head) = entry.head.filter(|head| head.line == "200") else {
            continue;
        };
        let is_request = asked.get("id").is_some() && asked.get("method").is_some();
        if !is_request {
            continue;
        }
        let kind = head.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "application/json" | "text/event-stream" => seen.extend([sent, number]),
            "" => {
                return Err(Unmet::broken(
                    "an answer without `Content-Type`",
                    [sent, number],
                ));
            }
            other => {
                return Err(Unmet::broken(
                    format!("an answer of the kind `{other}`"),
                    [sent, number],
                ));
            }
        }
    }
    seen.truncate(2);
    Seen::at(seen)
}

async fn notification(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    session.http()?;
    let params = json!({ "requestId": "turnbuckle-none", "reason": "a check" });
    session.notify("notifications/cancelled", params).await?;
    let mut seen = Vec::new();
    for (number, entry) in visit.tape.all() {
        let Some((sent, asked)) = answered(&visit.tape, &entry) else {
            continue;
        };
        let Some(head) = &entry.head else { continue };
        let is_request = asked.get("id").is_some() && asked.get("method").is_some();
        if is_request || !asked.is_object() {
            continue;
        }
        let what = match asked["method"].as_str() {
            Some(method) => format!("`{method}`"),
            None => "a response".to_owned(),
        };
        match head.line.as_str() {
            "202" if entry.text.is_empty() => seen.extend([sent, number]),
            "202" => {
                let what = format!("{what} is answered with 202 and a body");
                return Err(Unmet::broken(what, [sent, number]));
            }
            status if status.starts_with(['4', '5']) => {}
            status => {
                let what = format!("{what} is answered with the status {status}");
                return Err(Unmet::broken(what, [sent, number]));
            }
        }
    }
    if seen.is_empty() {
        return Err(Unmet::not_tested("the server accepts no notification"));
    }
    seen.truncate(2);
    Seen::at(seen)
}

async fn get(visit: &Visit) -> Outcome {
    // A server may allow one stream for each session, and the shared one may have its own.
    let session = visit.fresh().await?;
    let patience = visit.options.patience;
    let opening = stream(&session)?.send_within(2 * patience);
    // A stream may have nothing to say, and nobody says when it has to begin.
    let Ok(reply) = timeout(patience, opening).await else {
        return Err(Unmet::not_tested(format!(
            "GET is not answered within {patience:?}, before there is an event"
        )));
    };
    let reply = reply?;
    match reply.status {
        405 => Seen::at(reply.entries()),
        200 if reply.is_stream() => Seen::at(reply.entries()),
        200 => {
            let what = format!("200 with the kind `{}`", reply.content_type());
            Err(Unmet::broken(what, reply.entries()))
        }
        status => Err(Unmet::broken(
            format!("the status {status}"),
            reply.entries(),
        )),
    }
}

/// Makes up a GET for the stream of a session.
pub(super) fn stream(session: &Session) -> Result<crate::wire::http::Draft, Unmet> {
    let headers = session.speech.headers(&Value::Null, session.id.as_deref());
    let draft = session.http()?.request("GET").headers(headers);
    Ok(draft
        .without("content-type")
        .header("accept", "text/event-stream"))
}

async fn unknown_method(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    session.http()?;
    let answer = session.ask("turnbuckle/no-such-method", json!({})).await?;
    match (answer.error().map_err(Unmet::aside)?, answer.status) {
        (-32601, Some(404)) => answer.seen(),
        (-32601, Some(status)) => Err(answer.broken(format!("the status {status}"))),
        (code, _) => Err(Unmet::not_tested(format!("the error is {code}"))),
    }
}

async fn version_refused(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let mut seen = Vec::new();
    for version in ["1900-01-01", "turnbuckle"] {
        let draft = session.harmless()?.deliberate();
        let answer = session
            .exchange(draft.header("mcp-protocol-version", version))
            .await?;
        if answer.status != Some(400) {
            return Err(answer.broken(format!("{} for `{version}`", status(&answer))));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen)
}

async fn version_missing(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?.without("mcp-protocol-version");
    let answer = session.exchange(draft.deliberate()).await?;
    match answer.value.get("result") {
        Some(_) => answer.seen(),
        // Without the header 2025-03-26 is meant, and whoever does not serve that has to refuse it with 400.
        None if answer.status == Some(400) && !speaks(visit, Revision::V2025_03_26).await => Err(
            Unmet::not_applicable("the server does not serve 2025-03-26, which is meant then"),
        ),
        None => Err(answer.broken(format!("{}: {}", status(&answer), answer.describe()))),
    }
}

/// Says whether the server agrees to speak a revision with a handshake.
async fn speaks(visit: &Visit, revision: Revision) -> bool {
    let Ok(mut session) = visit.beside(revision).await else {
        return false;
    };
    let begun = session.begin_properly().await;
    let opening = session.opening.as_ref().filter(|_| begun.is_ok());
    opening.is_some_and(|opening| opening.value["result"]["protocolVersion"] == revision.as_str())
}

async fn modern_get(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    only_modern(session)?;
    let mut seen = Vec::new();
    for method in ["GET", "DELETE"] {
        let draft = session.http()?.request(method).deliberate();
        let reply = draft.header("accept", "text/event-stream").send().await?;
        if reply.status != 405 {
            without_handshake(visit).await?;
            let what = format!("{method} is answered with {}", reply.status);
            return Err(Unmet::broken(what, reply.entries()));
        }
        seen.extend(reply.entries());
    }
    Seen::at(seen)
}

async fn modern_session(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    only_modern(session)?;
    let draft = session
        .harmless()?
        .header("mcp-session-id", "turnbuckle-none")
        .header("last-event-id", "turnbuckle-none");
    let answer = session.exchange(draft.deliberate()).await?;
    if answer.header("mcp-session-id").is_some() || answer.value.get("result").is_none() {
        without_handshake(visit).await?;
    }
    if answer.header("mcp-session-id").is_some() {
        return Err(answer.broken("the answer has a session id"));
    }
    match answer.value.get("result") {
        Some(_) => answer.seen(),
        None => Err(answer.broken(format!("{}: {}", status(&answer), answer.describe()))),
    }
}

async fn accept(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?;
    let kinds = "text/event-stream;q=0.9,application/json";
    let answer = session.exchange(draft.header("accept", kinds)).await?;
    understood(&answer, kinds)
}

async fn charset(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?;
    let kind = "application/json; charset=utf-8";
    let answer = session.exchange(draft.header("content-type", kind)).await?;
    understood(&answer, kind)
}

fn understood(answer: &Answer, header: &str) -> Outcome {
    match answer.status {
        Some(200) => answer.seen(),
        _ => Err(answer.broken(format!("{} for `{header}`", status(answer)))),
    }
}

async fn content_type(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let draft = session.harmless()?.header("content-type", "text/plain");
    let answer = session.exchange(draft.deliberate()).await?;
    match answer.status {
        Some(400..) => answer.seen(),
        _ => Err(answer.broken(format!("{} for `text/plain`", status(&answer)))),
    }
}

/// Returns the entry and the message that a response answers, if nothing was wrong with it on purpose.
fn answered(tape: &Tape, entry: &Entry) -> Option<(usize, Value)> {
    entry.head.as_ref()?;
    let sent = entry.answers?;
    let asked = tape.entry(sent);
    let posted = asked.head.as_ref()?.line.starts_with("POST ");
    match posted && !asked.deliberate {
        true => Some((sent, asked.json()?)),
        false => None,
    }
}

/// Makes sure that the server has no revision with a handshake.
fn only_modern(session: &Session) -> Result<(), Unmet> {
    let opening = session.opening.as_ref();
    let versions =
        opening.and_then(|answer| answer.value["result"]["supportedVersions"].as_array());
    let mut versions = versions.into_iter().flatten().filter_map(Value::as_str);
    let older = |version: &str| {
        version
            .parse::<Revision>()
            .is_ok_and(|one| one < Revision::MODERN)
    };
    match versions.any(older) {
        true => Err(Unmet::not_applicable(
            "the server serves revisions with sessions too",
        )),
        false => Ok(()),
    }
}

/// Makes sure that nobody can begin a session: a server may serve more than it lists.
async fn without_handshake(visit: &Visit) -> Result<(), Unmet> {
    match legacy(visit).await {
        Ok(_) => Err(Unmet::not_applicable(
            "the server serves revisions with sessions too",
        )),
        Err(_) => Ok(()),
    }
}

/// Says the status in words.
pub(super) fn status(answer: &Answer) -> String {
    match answer.status {
        Some(status) => format!("the status {status}"),
        None => "no status".to_owned(),
    }
}
