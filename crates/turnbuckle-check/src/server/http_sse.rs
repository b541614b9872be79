//! HTTP+SSE of 2024-11-05.

use super::origins::{STRANGER, is_local};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::tape::Tape;
use crate::visit::Visit;
use crate::wire::http_sse;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "http-sse.endpoint-first",
        Area::Http,
        &["httpsse.endpoint-event", "httpsse.endpoints"],
    )
    .says("The first event of the stream is `endpoint`, and says where messages are posted to.")
    .cure("Send an event `endpoint` with the URI for messages before anything else.")
    .on(On::HttpSse)
    .ask(|visit| Box::pin(endpoint_first(visit))),
    Rule::server("http-sse.message-events", Area::Http, &["httpsse.message-event"])
        .says("Every message of the server is an event `message`.")
        .cure("Name the events `message`, or give them no name.")
        .on(On::HttpSse)
        .look(|_, tape| message_events(tape)),
    Rule::server("http-sse.stranger-refused", Area::Origins, &["http.origin.validate"])
        .says("A stream for a web page that the server does not know is refused.")
        .cure("Compare `Origin`, if there is one, with a list of those that may; on a local server, with `localhost`.")
        .on(On::HttpSse)
        .ask(|visit| Box::pin(stranger(visit))),
];

async fn endpoint_first(visit: &Visit) -> Outcome {
    let stream = visit.session().await?.http_sse()?;
    let entries = || stream.opened.into_iter().chain(stream.told.clone());
    match &stream.told[..] {
        [_] => Seen::at(entries()),
        _ => Err(Unmet::broken(
            "another event comes before `endpoint`",
            entries(),
        )),
    }
}

fn message_events(tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    for (at, entry) in tape.all() {
        let Some(event) = &entry.event else { continue };
        if entry.json().is_none_or(|value| !value.is_object()) {
            continue;
        }
        if event.name != "message" {
            let what = format!("a message comes as the event `{}`", event.name);
            return Err(Unmet::broken(what, [at]));
        }
        seen.push(at);
    }
    seen.truncate(2);
    Seen::at(seen)
}

async fn stranger(visit: &Visit) -> Outcome {
    let caller = visit.caller()?;
    let draft = http_sse::ask(&caller).header("origin", STRANGER);
    let reply = draft.deliberate().send().await?;
    match reply.status {
        400.. => Seen::at(reply.entries()),
        _ if !is_local(visit)? => Err(Unmet::not_tested(
            "only its operator knows which web pages a public server is for",
        )),
        _ => {
            let what = format!("a stream is opened for {STRANGER}");
            Err(Unmet::broken(what, reply.entries()))
        }
    }
}
