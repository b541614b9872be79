//! Event streams: reading, resuming and fallback.

use serde_json::Value;

use crate::{
    engine::{
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
    },
    mock_server::{
        Scenario,
        scenario::RETRY_DELAY,
        scenario_run::{ClientMessage, ScenarioRun, ScenarioRuns},
    },
    rule::{Area, Rule, Transports},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::client("client.streams.read", Area::Streams, &["http.post.client-both", "http.sse.comment-ignore"])
        .requirement("Responses in event streams are accepted.")
        .hint("Support `text/event-stream` and `application/json` responses; ignore comments and find the response among the events.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::NotificationsFirst], read),
    Rule::client("client.streams.resumed", Area::Streams, &["http.resume.client-get", "http.resume.any-origin", "http.sse.polling-reconnect"])
        .requirement("An interrupted stream is resumed.")
        .hint("When a stream with event ids ends before the response, send GET with `Last-Event-ID`.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::InterruptedStream], resumed),
    Rule::client("client.streams.retry", Area::Streams, &["http.sse.retry-respect"])
        .requirement("The client respects `retry` before it reconnects.")
        .hint("Wait for the last `retry` value in milliseconds before sending GET.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::InterruptedStream], retry),
    Rule::client("client.streams.not-resumed", Area::Streams, &["http.sse.no-resume"])
        .requirement("Since 2026-07-28, an interrupted stream is not resumed.")
        .hint("Do not send `Last-Event-ID`; treat the request as failed.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::InterruptedStream], not_resumed),
    Rule::client("client.streams.fresh-id", Area::Streams, &["http.sse.reissue"])
        .requirement("A request with an interrupted stream is repeated with a new id, if at all.")
        .hint("Use a new id for a repeated request.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::InterruptedStream], reissued_id),
    Rule::client("client.streams.http-sse-fallback", Area::Streams, &["httpsse.compat.client-legacy", "httpsse.compat.client-modern"])
        .requirement("The client falls back to HTTP+SSE.")
        .hint("When POST gets 400, 404 or 405 without an error of 2026-07-28, send GET and wait for the `endpoint` event.")
        .transports(Transports::Http)
        .scenarios(&[Scenario::HttpSseOnly], falls_back),
    Rule::client("client.streams.endpoint", Area::Streams, &["httpsse.client-post"])
        .requirement("Messages are sent to the URI of the `endpoint` event.")
        .hint("Resolve the URI of the `endpoint` event against the URL of the stream, and keep its query.")
        .transports(Transports::HttpSse)
        .scenarios(&[], endpoint),
];

fn read(runs: &ScenarioRuns) -> Outcome {
    let (plain, streamed_run) = (
        runs.get(Scenario::Default)?,
        runs.get(Scenario::NotificationsFirst)?,
    );
    let methods = streamed_run.methods();
    let streamed = streamed_run
        .requests()
        .find(|message| is_streamed(streamed_run, message));
    let Some(streamed) = streamed else {
        return Err(NotPassed::not_tested("the client sent no request"));
    };
    // A method that is only reached with JSON responses shows that the stream was not read.
    let missing = plain
        .methods()
        .into_iter()
        .find(|method| !methods.contains(method));
    match missing {
        None => {
            let response = streamed_run.response_to(streamed).map(|(number, _)| number);
            Evidence::from_entries([streamed.number].into_iter().chain(response))
        }
        Some(method) => {
            let observed =
                format!("the client does not reach `{method}`, as it does with JSON responses");
            let last = streamed_run.requests().last().map(|message| message.number);
            Err(NotPassed::violation(observed, last))
        }
    }
}

/// Returns whether the response to a request is a stream.
fn is_streamed(run: &ScenarioRun, request: &ClientMessage) -> bool {
    run.entries.iter().any(|(_, entry)| {
        let head = entry.head.as_ref();
        let kind = head.and_then(|head| head.header("content-type"));
        let responses =
            entry.direction == Direction::Sent && entry.response_to == Some(request.number);
        responses && kind == Some("text/event-stream")
    })
}

/// Returns the request with the interrupted stream.
fn lost(run: &ScenarioRun) -> Result<&ClientMessage, NotPassed> {
    let lost = run.requests().find(|message| {
        is_streamed(run, message) && message.method() != Some("subscriptions/listen")
    });
    lost.ok_or_else(|| NotPassed::not_tested("the client made no request with a stream"))
}

/// Returns the requests with `Last-Event-ID`.
fn resuming(run: &ScenarioRun) -> impl Iterator<Item = (usize, &str)> {
    run.http_requests()
        .filter_map(|(number, head, _)| Some((number, head.header("last-event-id")?)))
}

fn resumed(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::InterruptedStream)?;
    let lost = lost(run)?;
    match resuming(run).next() {
        Some((number, "turnbuckle-event-1")) => Evidence::from_entries([lost.number, number]),
        Some((number, id)) => {
            let observed = format!("`Last-Event-ID` is `{id}` instead of `turnbuckle-event-1`");
            Err(NotPassed::violation(observed, [lost.number, number]))
        }
        None => Err(NotPassed::violation(
            "no GET with `Last-Event-ID`",
            [lost.number],
        )),
    }
}

fn retry(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::InterruptedStream)?;
    let lost = lost(run)?;
    let at = |name| {
        run.notes
            .iter()
            .find(|(observed, _)| *observed == name)
            .map(|(_, at)| *at)
    };
    let (Some(cut), Some(back)) = (at("cut"), at("resumed")) else {
        return Err(NotPassed::not_tested("the client did not reconnect"));
    };
    let numbers = [lost.number]
        .into_iter()
        .chain(resuming(run).map(|(number, _)| number));
    // Allow for timer inaccuracy.
    let waited = back - cut;
    if waited + RETRY_DELAY / 20 >= RETRY_DELAY {
        Evidence::from_entries(numbers.take(2))
    } else {
        let observed =
            format!("the client reconnected after {waited:?} instead of {RETRY_DELAY:?}");
        Err(NotPassed::violation(observed, numbers.take(2)))
    }
}

fn not_resumed(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::InterruptedStream)?;
    let lost = lost(run)?;
    match resuming(run).next() {
        None => Evidence::from_entries([lost.number]),
        Some((number, id)) => {
            let observed = format!("`Last-Event-ID: {id}`");
            Err(NotPassed::violation(observed, [lost.number, number]))
        }
    }
}

fn reissued_id(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::InterruptedStream)?;
    let lost = lost(run)?;
    let without_id = |message: &ClientMessage| {
        let mut message = message.value.clone();
        message["id"] = Value::Null;
        message["params"]["_meta"] = Value::Null;
        message
    };
    let again = run
        .requests()
        .find(|message| message.number > lost.number && without_id(message) == without_id(lost));
    match again {
        None => Err(NotPassed::not_tested(
            "the client did not repeat the request",
        )),
        Some(again) if again.id() == lost.id() => {
            let observed = format!("both requests have the id {}", again.value["id"]);
            Err(NotPassed::violation(observed, [lost.number, again.number]))
        }
        Some(again) => Evidence::from_entries([lost.number, again.number]),
    }
}

fn falls_back(runs: &ScenarioRuns) -> Outcome {
    let run = runs.get(Scenario::HttpSseOnly)?;
    let numbers: Vec<_> = run
        .http_requests()
        .map(|(number, ..)| number)
        .take(3)
        .collect();
    let opened = run
        .http_requests()
        .find(|(_, head, _)| head.start_line.starts_with("GET /mcp"));
    if numbers.is_empty() {
        return Err(NotPassed::not_tested("the client did not connect"));
    }
    let Some((opened, ..)) = opened else {
        let why = "the client does not fall back to HTTP+SSE, which is optional";
        return Err(NotPassed::not_applicable(why));
    };
    let posted = run.http_requests().find(|(number, head, _)| {
        *number > opened && head.start_line.starts_with("POST /messages")
    });
    match posted {
        Some((posted, ..)) => Evidence::from_entries([numbers[0], opened, posted]),
        None => {
            let observed = "a GET after 405, but no POST to the endpoint";
            Err(NotPassed::violation(observed, [numbers[0], opened]))
        }
    }
}

fn endpoint(runs: &ScenarioRuns) -> Outcome {
    let mut evidence = Vec::new();
    for run in runs.all() {
        let opened = run.entries.iter().find(|(_, entry)| {
            entry
                .event
                .as_ref()
                .is_some_and(|event| event.name == "endpoint")
        });
        let Some((opened, event)) = opened else {
            continue;
        };
        let posts = run
            .http_requests()
            .filter(|(number, head, _)| number > opened && head.start_line.starts_with("POST "));
        for (number, head, _) in posts {
            if head.start_line != format!("POST {}", event.text) {
                let observed = format!(
                    "`{}`, but the endpoint is `{}`",
                    head.start_line, event.text
                );
                return Err(NotPassed::violation(observed, [*opened, number]));
            }
            evidence.push(number);
        }
    }
    Evidence::from_entries(evidence.into_iter().take(3))
}
