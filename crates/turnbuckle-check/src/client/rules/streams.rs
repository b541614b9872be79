//! Streams of events: that they are read, and what happens when one breaks off.

use serde_json::Value;

use crate::client::Scene;
use crate::client::scene::PAUSE;
use crate::client::take::{Said, Take, Takes};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::tape::Way;

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.streams.read", Area::Streams, &["http.post.client-both", "http.sse.comment-ignore"])
        .says("An answer that comes as a stream of events is an answer, whatever comes before it.")
        .cure("Read `text/event-stream` as well as `application/json`: pass over comments, and look for the answer among the events.")
        .on(On::Http)
        .watch(&[Scene::Chatty], read),
    Rule::client("client.streams.resumed", Area::Streams, &["http.resume.client-get", "http.resume.any-origin", "http.sse.polling-reconnect"])
        .says("A stream that broke off is gone on with.")
        .cure("When a stream with event ids ends before the answer, send GET with `Last-Event-ID` set to the last id.")
        .on(On::Http)
        .watch(&[Scene::Cut], resumed),
    Rule::client("client.streams.retry", Area::Streams, &["http.sse.retry-respect"])
        .says("A client waits as long as the server wants before it connects again.")
        .cure("Wait for the milliseconds of the last `retry` before you send GET.")
        .on(On::Http)
        .watch(&[Scene::Cut], retry),
    Rule::client("client.streams.not-resumed", Area::Streams, &["http.sse.no-resume"])
        .says("Since 2026-07-28 a stream that broke off is not gone on with.")
        .cure("Send no `Last-Event-ID`: a request whose stream is lost is lost.")
        .on(On::Http)
        .watch(&[Scene::Cut], not_resumed),
    Rule::client("client.streams.fresh-id", Area::Streams, &["http.sse.reissue"])
        .says("A request whose stream broke off is made again with another id, if at all.")
        .cure("Give a request that you make again an id of its own.")
        .on(On::Http)
        .watch(&[Scene::Cut], fresh_id),
    Rule::client("client.streams.http-sse-fallback", Area::Streams, &["httpsse.compat.client-legacy", "httpsse.compat.client-modern"])
        .says("A server that speaks only HTTP+SSE is spoken to by that.")
        .cure("When POST gets 400, 404 or 405 without an error of 2026-07-28, try GET and wait for the event `endpoint`.")
        .on(On::Http)
        .watch(&[Scene::OldHttp], falls_back),
    Rule::client("client.streams.endpoint", Area::Streams, &["httpsse.client-post"])
        .says("All messages are posted to the place that the event `endpoint` names.")
        .cure("Post to the URI of the event `endpoint`, resolved against the address of the stream, with its query.")
        .on(On::HttpSse)
        .watch(&[], endpoint),
];

fn read(takes: &Takes) -> Outcome {
    let (plain, chatty) = (takes.of(Scene::Plain)?, takes.of(Scene::Chatty)?);
    let methods = chatty.methods();
    let streamed = chatty.requests().find(|said| is_streamed(chatty, said));
    let Some(streamed) = streamed else {
        return Err(Unmet::not_tested("the client asked nothing"));
    };
    // Where it got no further than with answers in JSON, it did not read the answer before.
    let missing = plain
        .methods()
        .into_iter()
        .find(|method| !methods.contains(method));
    match missing {
        None => {
            let answer = chatty.answer(streamed).map(|(number, _)| number);
            Seen::at([streamed.number].into_iter().chain(answer))
        }
        Some(method) => {
            let what =
                format!("the client never comes to `{method}`, as it does when answers are JSON");
            let last = chatty.requests().last().map(|said| said.number);
            Err(Unmet::broken(what, last))
        }
    }
}

/// Says whether a request was answered by a stream.
fn is_streamed(take: &Take, request: &Said) -> bool {
    take.entries.iter().any(|(_, entry)| {
        let head = entry.head.as_ref();
        let kind = head.and_then(|head| head.header("content-type"));
        let answers = entry.way == Way::Sent && entry.answers == Some(request.number);
        answers && kind == Some("text/event-stream")
    })
}

/// Returns the request whose stream broke off.
fn lost(take: &Take) -> Result<&Said, Unmet> {
    let lost = take
        .requests()
        .find(|said| is_streamed(take, said) && said.method() != Some("subscriptions/listen"));
    lost.ok_or_else(|| Unmet::not_tested("the client made no request that could be lost"))
}

/// Returns the requests that go on with a stream.
fn resuming(take: &Take) -> impl Iterator<Item = (usize, &str)> {
    take.exchanges()
        .filter_map(|(number, head, _)| Some((number, head.header("last-event-id")?)))
}

fn resumed(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Cut)?;
    let lost = lost(take)?;
    match resuming(take).next() {
        Some((number, "turnbuckle-event-1")) => Seen::at([lost.number, number]),
        Some((number, id)) => {
            let what = format!("`Last-Event-ID` is `{id}` instead of `turnbuckle-event-1`");
            Err(Unmet::broken(what, [lost.number, number]))
        }
        None => Err(Unmet::broken("no GET with `Last-Event-ID`", [lost.number])),
    }
}

fn retry(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Cut)?;
    let lost = lost(take)?;
    let at = |name| {
        take.notes
            .iter()
            .find(|(what, _)| *what == name)
            .map(|(_, at)| *at)
    };
    let (Some(cut), Some(back)) = (at("cut"), at("resumed")) else {
        return Err(Unmet::not_tested("the client did not connect again"));
    };
    let numbers = [lost.number]
        .into_iter()
        .chain(resuming(take).map(|(number, _)| number));
    // Clocks are not that exact.
    let waited = back - cut;
    match waited + PAUSE / 20 >= PAUSE {
        true => Seen::at(numbers.take(2)),
        false => {
            let what =
                format!("the client came back after {waited:?}, and was to wait for {PAUSE:?}");
            Err(Unmet::broken(what, numbers.take(2)))
        }
    }
}

fn not_resumed(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Cut)?;
    let lost = lost(take)?;
    match resuming(take).next() {
        None => Seen::at([lost.number]),
        Some((number, id)) => {
            let what = format!("`Last-Event-ID: {id}`");
            Err(Unmet::broken(what, [lost.number, number]))
        }
    }
}

fn fresh_id(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::Cut)?;
    let lost = lost(take)?;
    let bare = |said: &Said| {
        let mut message = said.message.clone();
        message["id"] = Value::Null;
        message["params"]["_meta"] = Value::Null;
        message
    };
    let again = take
        .requests()
        .find(|said| said.number > lost.number && bare(said) == bare(lost));
    match again {
        None => Err(Unmet::not_tested(
            "the client did not make the request again",
        )),
        Some(again) if again.id() == lost.id() => {
            let what = format!("both requests have the id {}", again.message["id"]);
            Err(Unmet::broken(what, [lost.number, again.number]))
        }
        Some(again) => Seen::at([lost.number, again.number]),
    }
}

fn falls_back(takes: &Takes) -> Outcome {
    let take = takes.of(Scene::OldHttp)?;
    let numbers: Vec<_> = take
        .exchanges()
        .map(|(number, ..)| number)
        .take(3)
        .collect();
    let opened = take
        .exchanges()
        .find(|(_, head, _)| head.line.starts_with("GET /mcp"));
    if numbers.is_empty() {
        return Err(Unmet::not_tested("the client did not connect"));
    }
    let Some((opened, ..)) = opened else {
        let why = "the client does not turn to HTTP+SSE, which only those do who want to";
        return Err(Unmet::not_applicable(why));
    };
    let posted = take
        .exchanges()
        .find(|(number, head, _)| *number > opened && head.line.starts_with("POST /messages"));
    match posted {
        Some((posted, ..)) => Seen::at([numbers[0], opened, posted]),
        None => {
            let what = "a GET after POST got 405, and nothing is posted to the endpoint";
            Err(Unmet::broken(what, [numbers[0], opened]))
        }
    }
}

fn endpoint(takes: &Takes) -> Outcome {
    let mut seen = Vec::new();
    for take in takes.all() {
        let opened = take.entries.iter().find(|(_, entry)| {
            entry
                .event
                .as_ref()
                .is_some_and(|event| event.name == "endpoint")
        });
        let Some((opened, event)) = opened else {
            continue;
        };
        let posts = take
            .exchanges()
            .filter(|(number, head, _)| number > opened && head.line.starts_with("POST "));
        for (number, head, _) in posts {
            if head.line != format!("POST {}", event.text) {
                let what = format!("`{}`, but the endpoint is `{}`", head.line, event.text);
                return Err(Unmet::broken(what, [*opened, number]));
            }
            seen.push(number);
        }
    }
    Seen::at(seen.into_iter().take(3))
}
