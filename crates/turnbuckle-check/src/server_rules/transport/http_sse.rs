//! HTTP+SSE of 2024-11-05.

use super::host_origin::{STRANGER, is_local};
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
    .requirement("The first event of the stream is `endpoint`, and says where messages are posted to.")
    .fix("Send an event `endpoint` with the URI for messages before anything else.")
    .transports(Transports::HttpSse)
    .active(|ctx| Box::pin(endpoint_first(ctx))),
    Rule::server("http-sse.message-events", Area::Http, &["httpsse.message-event"])
        .requirement("Every message of the server is an event `message`.")
        .fix("Name the events `message`, or give them no name.")
        .transports(Transports::HttpSse)
        .passive(|_, transcript| message_events(transcript)),
    Rule::server("http-sse.stranger-refused", Area::Origins, &["http.origin.validate"])
        .requirement("A stream for a web page that the server does not know is refused.")
        .fix("Compare `Origin`, if there is one, with a list of those that may; on a local server, with `localhost`.")
        .transports(Transports::HttpSse)
        .active(|ctx| Box::pin(stranger(ctx))),
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
            "another event comes before `endpoint`",
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
            let observed = format!("a message comes as the event `{}`", event.name);
            return Err(NotPassed::violation(observed, [at]));
        }
        evidence.push(at);
    }
    evidence.truncate(2);
    Evidence::from_entries(evidence)
}

async fn stranger(ctx: &CheckContext) -> Outcome {
    let http_client = ctx.http_client()?;
    let raw_request = http_sse::stream_request(&http_client).header("origin", STRANGER);
    let reply = raw_request.deliberately_invalid().send().await?;
    match reply.status {
        400.. => Evidence::from_entries(reply.entries()),
        _ if !is_local(ctx)? => Err(NotPassed::not_tested(
            "only its operator knows which web pages a public server is for",
        )),
        _ => {
            let observed = format!("a stream is opened for {STRANGER}");
            Err(NotPassed::violation(observed, reply.entries()))
        }
    }
}
