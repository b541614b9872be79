//! HTTP+SSE of 2024-11-05.

use super::host_origin::{UNKNOWN_ORIGIN, is_local};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Transcript,
    },
    rule::{Area, Rule, Transports},
    wire::http_sse,
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "http-sse.endpoint-first",
        Area::Http,
        &["httpsse.endpoint-event", "httpsse.endpoints"],
    )
    .requirement("The first event of the stream is `endpoint`, with the URI for messages.")
    .hint("Send an `endpoint` event with the URI for messages before any other event.")
    .transports(Transports::HttpSse)
    .active(|ctx| Box::pin(endpoint_first(ctx))),
    Rule::server("http-sse.message-events", Area::Http, &["httpsse.message-event"])
        .requirement("The server sends every message as a `message` event.")
        .hint("Set the event type to `message`, or omit it.")
        .transports(Transports::HttpSse)
        .passive(|_, transcript| message_events(transcript)),
    Rule::server(
        "http-sse.stranger-refused", // quoted
        Area::Origins,
        &["http.origin.validate"],
    )
        .requirement("The server rejects a stream request with an unknown `Origin`.")
        .hint("Compare `Origin`, if present, with a list of allowed origins; on a local server, with `localhost`.")
        .transports(Transports::HttpSse)
        .active(|ctx| Box::pin(unknown_origin(ctx))),
];

async fn endpoint_first(ctx: &CheckContext) -> Outcome {
    let stream = ctx.session().await?.http_sse()?;
    let entries = || {
        stream
            .opened
            .into_iter()
            .chain(stream.endpoint_events.clone())
    };
    match &stream.endpoint_events[..] {
        [_] => Evidence::from_entries(entries()),
        _ => Err(NotPassed::violation(
            "another event before `endpoint`",
            entries(),
        )),
    }
}

fn message_events(transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    for (at, entry) in transcript.all() {
        let Some(event) = &entry.event else { continue };
        if entry.json().is_none_or(|value| !value.is_object()) {
            continue;
        }
        if event.name != "message" {
            let observed = format!("a message in an event of type `{}`", event.name);
            return Err(NotPassed::violation(observed, [at]));
        }
        evidence.push(at);
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

async fn unknown_origin(ctx: &CheckContext) -> Outcome {
    let http_client = ctx.http_client()?;
    let raw_request = http_sse::stream_request(&http_client).header("origin", UNKNOWN_ORIGIN);
    let response = raw_request.deliberately_invalid().send().await?;
    match response.status {
        400.. => Evidence::from_entries(response.entries()),
        _ if !is_local(ctx)? => Err(NotPassed::not_tested(
            "the allowed origins of a public server are unknown",
        )),
        _ => {
            let observed = format!("a stream for {UNKNOWN_ORIGIN} is accepted");
            Err(NotPassed::violation(observed, response.entries()))
        }
    }
}
