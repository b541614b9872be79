//! Active checks of event streams.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{no_stream, observed::streams};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::tool_runs::{ToolRun, ToolRuns, next_progress_token},
    server_rules::transport::http::get_stream_request,
    session::Session,
    wire::http::{RawHttpRequest, RawHttpResponse, StreamEvent},
};

/// The maximum time from the last message of a stream to its end.
const MAX_CLOSE_DELAY: Duration = Duration::from_secs(2);

/// The maximum number of resumptions of a stream, and the default delay before each.
const MAX_RESUMPTIONS: usize = 5;
const DEFAULT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The minimum duration of a call that is still in flight at its first event.
const MIN_LONG_CALL: Duration = Duration::from_millis(100);

/// Methods without side effects, preferred for checks of streams.
const READ_ONLY_METHODS: &[&str] = &[
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "prompts/list",
];

pub(super) async fn response_arrives(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let raw_request = streaming_request(ctx, &session).await?;
    let response = session.send_raw(raw_request).await?;
    if response.value.is_null() {
        let violation = response.violation("the stream ends without the response");
        Err(violation.for_requirement("http.sse.no-early-close"))
    } else {
        response.evidence()
    }
}

pub(super) async fn ends(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let raw_request = streaming_request(ctx, &session).await?;
    let id = raw_request.id();
    let mut response = open(raw_request).await?;
    let mut responded_at = None;
    let mut until = Instant::now() + ctx.pace.response_timeout();
    loop {
        match (response.event_until(until).await, responded_at) {
            (StreamEvent::Message(at), None) => {
                let message = ctx.transcript.entry(at).json().unwrap_or_default();
                if message.get("method").is_none() && message.get("id") == id.as_ref() {
                    responded_at = Some(at);
                    until = Instant::now() + MAX_CLOSE_DELAY;
                }
            }
            (StreamEvent::Message(at), Some(_)) if ctx.transcript.entry(at).text.is_empty() => {}
            (StreamEvent::Message(at), Some(response_at)) => {
                let observed = "another message after the response";
                return Err(NotPassed::violation(
                    observed,
                    [response.sent, response_at, at],
                ));
            }
            (StreamEvent::End, Some(response_at)) => {
                return Evidence::from_entries([response.sent, response_at]);
            }
            (StreamEvent::Timeout, Some(response_at)) => {
                let observed =
                    format!("the stream is still open {MAX_CLOSE_DELAY:?} after the response");
                return Err(NotPassed::violation(observed, [response.sent, response_at]));
            }
            (StreamEvent::Interrupted(why), Some(response_at)) => {
                let observed = format!("the stream is interrupted: {why}");
                return Err(NotPassed::violation(observed, [response.sent, response_at]));
            }
            (StreamEvent::End | StreamEvent::Timeout | StreamEvent::Interrupted(_), None) => {
                return Err(NotPassed::not_tested(
                    "the response did not arrive on the stream",
                ));
            }
        }
    }
}

pub(super) async fn replays_own(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let raw_request = streaming_request(ctx, &session).await?;
    let id = raw_request.id();
    let first = read(ctx, open(raw_request).await?, ctx.pace.response_timeout()).await;
    let other = streaming_request(ctx, &session).await?;
    let other_id = other.id();
    let second = read(ctx, open(other).await?, ctx.pace.response_timeout()).await;
    let last = first_id(ctx, &first)?;
    let Some(resumed) = resume(&session, &last).await? else {
        return Err(NotPassed::not_applicable(
            "the server does not resume an ended stream",
        ));
    };
    let entries = resumed.entries();
    let replayed = read(ctx, resumed, ctx.pace.quiet_period()).await;
    for &at in &replayed {
        let message = ctx.transcript.entry(at).json().unwrap_or_default();
        let is_foreign = message.get("method").is_none()
            && message.get("id") == other_id.as_ref()
            && other_id != id;
        if is_foreign {
            let observed = format!(
                "the response to {} on the stream of {}",
                message["id"],
                id.unwrap_or_default()
            );
            return Err(NotPassed::violation(
                observed,
                entries.into_iter().chain([at]),
            ));
        }
    }
    Evidence::from_entries(
        entries
            .into_iter()
            .chain(replayed)
            .chain(second.into_iter().take(1)),
    )
}

pub(super) async fn survives(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let (raw_request, duration) = long_request(ctx, &session).await?;
    let id = raw_request.id();
    let mut response = open(raw_request).await?;
    let StreamEvent::Message(first) = response.event(ctx.pace.response_timeout()).await else {
        return Err(NotPassed::not_tested("no event precedes the response"));
    };
    let sent = response.sent;
    let last = first_id(ctx, &[first])?;
    drop(response);
    let until = Instant::now() + duration * 2 + MAX_CLOSE_DELAY;
    let mut evidence = vec![sent, first];
    let mut last = last;
    // A server may close the connection again before the response; then the stream is resumed again.
    for attempt in 0..MAX_RESUMPTIONS {
        let Some(mut resumed) = resume(&session, &last).await? else {
            match attempt {
                0 => {
                    return Err(NotPassed::not_applicable(
                        "the server does not resume streams",
                    ));
                }
                _ => break,
            }
        };
        evidence.extend(resumed.entries());
        while let StreamEvent::Message(at) = resumed.event_until(until).await {
            let entry = ctx.transcript.entry(at);
            let message = entry.json().unwrap_or_default();
            if message.get("method").is_none() && message.get("id") == id.as_ref() {
                return Evidence::from_entries([sent, resumed.sent, at]);
            }
            let id = entry.event.map(|event| event.id);
            last = id.filter(|id| !id.is_empty()).unwrap_or(last);
        }
        let pause = resumed
            .retry()
            .unwrap_or(DEFAULT_RETRY_DELAY)
            .min(MAX_CLOSE_DELAY);
        if Instant::now() + pause >= until {
            break;
        }
        sleep(pause).await;
    }
    let observed = "no response after the connection was lost";
    Err(NotPassed::violation(observed, evidence))
}

/// Builds a read-only request with a streamed response.
async fn streaming_request(
    ctx: &CheckContext,
    session: &Session,
) -> Result<RawHttpRequest, NotPassed> {
    // The tool runs add streams to the transcript; without safe calls, other streams suffice.
    let quickest = match ctx.tool_runs().await {
        Ok(tool_runs) => quickest(ctx, tool_runs, Duration::ZERO),
        Err(_) => None,
    };
    let all = streams(&ctx.transcript);
    let valid = all
        .iter()
        .filter(|stream| !ctx.transcript.entry(stream.sent).deliberately_invalid);
    let of_requests: Vec<_> = valid.filter(|stream| stream.is_of_request()).collect();
    let sent_for = |name: &&str| {
        let found = of_requests
            .iter()
            .find(|stream| stream.request["method"] == **name);
        found.map(|stream| stream.sent)
    };
    let read_only = READ_ONLY_METHODS.iter().find_map(sent_for);
    let sent = read_only.or(quickest.map(|(sent, _)| sent));
    repeat_request(ctx, session, sent.ok_or_else(no_stream)?)
}

/// Builds the shortest call with a streamed response that lasts long enough to interrupt it.
async fn long_request(
    ctx: &CheckContext,
    session: &Session,
) -> Result<(RawHttpRequest, Duration), NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    match quickest(ctx, tool_runs, MIN_LONG_CALL) {
        Some((sent, duration)) => Ok((repeat_request(ctx, session, sent)?, duration)),
        None => Err(tool_runs.none("takes long and streams its response")),
    }
}

/// Finds the shortest call of at least this duration with a streamed response and without client requests.
fn quickest(
    ctx: &CheckContext,
    tool_runs: &ToolRuns,
    min_duration: Duration,
) -> Option<(usize, Duration)> {
    let all = streams(&ctx.transcript);
    let streamed = |run: &ToolRun| {
        let [response] = &run.responses[..] else {
            return None;
        };
        let stream = all
            .iter()
            .find(|stream| Some(stream.sent) == response.sent)?;
        let has_client_requests = !run.client_requests(ctx).is_empty();
        (run.duration >= min_duration && !has_client_requests)
            .then_some((stream.sent, run.duration))
    };
    let found = tool_runs.runs.iter().filter_map(streamed);
    found.min_by_key(|(_, duration)| *duration)
}

/// Builds a copy of an earlier request.
fn repeat_request(
    ctx: &CheckContext,
    session: &Session,
    sent: usize,
) -> Result<RawHttpRequest, NotPassed> {
    let entry = ctx.transcript.entry(sent);
    let mut message = entry.json().unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    if let Some(meta) = message["params"]["_meta"].as_object_mut() {
        meta.retain(|key, _| !session.request_builder.meta().contains_key(key));
        if let Some(progress) = meta.get_mut("progressToken") {
            *progress = next_progress_token();
        }
    }
    let raw_request = session.raw_request(&method, message["params"].take())?;
    let headers = entry.head.map(|head| head.headers).unwrap_or_default();
    let repeated = headers
        .into_iter()
        .filter(|(name, _)| name.starts_with("mcp-param-"));
    Ok(raw_request.headers(repeated))
}

async fn open(raw_request: RawHttpRequest) -> Result<RawHttpResponse, NotPassed> {
    let response = raw_request.send().await?;
    if response.status == 200 && response.is_stream() {
        Ok(response)
    } else {
        Err(NotPassed::not_tested(
            "the response to the repeated request is not a stream",
        ))
    }
}

/// Requests the events after an event; returns `None` if the server does not resume the stream.
///
/// A missing response is not a violation: a stream may send its headers with its first event.
async fn resume(session: &Session, last: &str) -> Result<Option<RawHttpResponse>, NotPassed> {
    let response = get_stream_request(session)?
        .header("last-event-id", last)
        .send()
        .await;
    let response = response.map_err(NotPassed::into_not_tested)?;
    Ok(Some(response).filter(|response| response.status == 200 && response.is_stream()))
}

/// Reads the events of a stream until none arrives for this time.
async fn read(
    ctx: &CheckContext,
    mut response: RawHttpResponse,
    response_timeout: Duration,
) -> Vec<usize> {
    let until = Instant::now() + ctx.pace.response_timeout();
    let mut events = Vec::new();
    while let StreamEvent::Message(at) = response
        .event_until(until.min(Instant::now() + response_timeout))
        .await
    {
        events.push(at);
    }
    events
}

/// Returns the id of the first event that has one.
fn first_id(ctx: &CheckContext, events: &[usize]) -> Result<String, NotPassed> {
    let ids = events
        .iter()
        .filter_map(|&at| ctx.transcript.entry(at).event);
    let mut ids = ids.map(|event| event.id).filter(|id| !id.is_empty());
    ids.next()
        .ok_or_else(|| NotPassed::not_applicable("the events lack ids"))
}
