//! Streams that are opened to see what becomes of them.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{no_stream, observed::streams};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::tool_runs::{ToolRun, ToolRuns, next_progress_token},
    server_rules::transport::http::stream,
    session::Session,
    wire::http::{RawHttpRequest, RawHttpResponse, StreamEvent},
};

/// How long a stream may take to end when all was said.
const ENDING: Duration = Duration::from_secs(2);

/// How often a stream is resumed, and how long to wait before if it does not say.
const RESUMPTIONS: usize = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// A call that takes so long is still worked on when its first event comes.
const LONG: Duration = Duration::from_millis(100);

/// Requests that are known to do nothing, by which streams are looked at first.
const HARMLESS: &[&str] = &[
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "prompts/list",
];

pub(super) async fn answer_comes(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let raw_request = streaming(ctx, &session).await?;
    let response = session.send_raw(raw_request).await?;
    match response.value.is_null() {
        false => response.evidence(),
        true => Err(response.violation("the stream ends without the answer")),
    }
}

pub(super) async fn ends(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let raw_request = streaming(ctx, &session).await?;
    let id = raw_request.id();
    let mut reply = open(raw_request).await?;
    let mut responded = None;
    let mut until = Instant::now() + ctx.options.response_timeout;
    loop {
        match (reply.event_until(until).await, responded) {
            (StreamEvent::Message(at), None) => {
                let message = ctx.transcript.entry(at).json().unwrap_or_default();
                if message.get("method").is_none() && message.get("id") == id.as_ref() {
                    responded = Some(at);
                    until = Instant::now() + ENDING;
                }
            }
            (StreamEvent::Message(at), Some(_)) if ctx.transcript.entry(at).text.is_empty() => {}
            (StreamEvent::Message(at), Some(response)) => {
                let observed = "another message after the answer";
                return Err(NotPassed::violation(observed, [reply.sent, response, at]));
            }
            (StreamEvent::End, Some(response)) => {
                return Evidence::from_entries([reply.sent, response]);
            }
            (StreamEvent::Timeout, Some(response)) => {
                let observed = format!("the stream is still open {ENDING:?} after the answer");
                return Err(NotPassed::violation(observed, [reply.sent, response]));
            }
            (StreamEvent::Interrupted(why), Some(response)) => {
                let observed = format!("the stream breaks off: {why}");
                return Err(NotPassed::violation(observed, [reply.sent, response]));
            }
            (StreamEvent::End | StreamEvent::Timeout | StreamEvent::Interrupted(_), None) => {
                return Err(NotPassed::not_tested(
                    "the answer did not come on the stream",
                ));
            }
        }
    }
}

pub(super) async fn replays_own(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let raw_request = streaming(ctx, &session).await?;
    let id = raw_request.id();
    let first = read(ctx, open(raw_request).await?, ctx.options.response_timeout).await;
    let other = streaming(ctx, &session).await?;
    let other_id = other.id();
    let second = read(ctx, open(other).await?, ctx.options.response_timeout).await;
    let last = first_id(ctx, &first)?;
    let Some(resumed) = resume(&session, &last).await? else {
        return Err(NotPassed::not_applicable(
            "a stream that has ended is not resumed",
        ));
    };
    let entries = resumed.entries();
    let replayed = read(ctx, resumed, ctx.options.quiet_period).await;
    for &at in &replayed {
        let message = ctx.transcript.entry(at).json().unwrap_or_default();
        let foreign = message.get("method").is_none()
            && message.get("id") == other_id.as_ref()
            && other_id != id;
        if foreign {
            let observed = format!(
                "the answer to {} on the stream of {}",
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
    let (raw_request, duration) = long(ctx, &session).await?;
    let id = raw_request.id();
    let mut reply = open(raw_request).await?;
    let StreamEvent::Message(first) = reply.event(ctx.options.response_timeout).await else {
        return Err(NotPassed::not_tested("nothing comes before the answer"));
    };
    let sent = reply.sent;
    let last = first_id(ctx, &[first])?;
    drop(reply);
    let until = Instant::now() + duration * 2 + ENDING;
    let mut evidence = vec![sent, first];
    let mut last = last;
    // A server may close a connection again before the answer is there: then it is asked again, as before.
    for again in 0..RESUMPTIONS {
        let Some(mut resumed) = resume(&session, &last).await? else {
            match again {
                0 => return Err(NotPassed::not_applicable("streams are not resumed")),
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
        let pause = resumed.retry().unwrap_or(PAUSE).min(ENDING);
        if Instant::now() + pause >= until {
            break;
        }
        sleep(pause).await;
    }
    let observed = "no answer comes after the connection was lost";
    Err(NotPassed::violation(observed, evidence))
}

/// Makes up a request that is known to be answered with a stream, and only reads.
async fn streaming(ctx: &CheckContext, session: &Session) -> Result<RawHttpRequest, NotPassed> {
    // What comes of calls is on the tape then; that none can be made is no trouble here.
    let quickest = match ctx.tool_runs().await {
        Ok(tool_runs) => quickest(ctx, tool_runs, Duration::ZERO),
        Err(_) => None,
    };
    let all = streams(&ctx.transcript);
    let right = all
        .iter()
        .filter(|stream| !ctx.transcript.entry(stream.sent).deliberately_invalid);
    let asked: Vec<_> = right.filter(|stream| stream.answers_request()).collect();
    let named = |name: &&str| {
        let found = asked
            .iter()
            .find(|stream| stream.request["method"] == **name);
        found.map(|stream| stream.sent)
    };
    let harmless = HARMLESS.iter().find_map(named);
    let sent = harmless.or(quickest.map(|(sent, _)| sent));
    again(ctx, session, sent.ok_or_else(no_stream)?)
}

/// Makes up the quickest call that is answered with a stream, and takes long enough to be in the middle of it.
async fn long(
    ctx: &CheckContext,
    session: &Session,
) -> Result<(RawHttpRequest, Duration), NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    match quickest(ctx, tool_runs, LONG) {
        Some((sent, duration)) => Ok((again(ctx, session, sent)?, duration)),
        None => Err(tool_runs.none("takes long and is answered with a stream")),
    }
}

/// Finds the quickest call that takes so long at least, asks nothing, and is answered with a stream.
fn quickest(
    ctx: &CheckContext,
    tool_runs: &ToolRuns,
    least: Duration,
) -> Option<(usize, Duration)> {
    let all = streams(&ctx.transcript);
    let streamed = |run: &ToolRun| {
        let [response] = &run.responses[..] else {
            return None;
        };
        let stream = all
            .iter()
            .find(|stream| Some(stream.sent) == response.sent)?;
        let asks = !run.client_requests(ctx).is_empty();
        (run.duration >= least && !asks).then_some((stream.sent, run.duration))
    };
    let found = tool_runs.runs.iter().filter_map(streamed);
    found.min_by_key(|(_, duration)| *duration)
}

/// Makes up a request that was made before.
fn again(ctx: &CheckContext, session: &Session, sent: usize) -> Result<RawHttpRequest, NotPassed> {
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
    let reply = raw_request.send().await?;
    if reply.status == 200 && reply.is_stream() {
        Ok(reply)
    } else {
        Err(NotPassed::not_tested("this time the answer is no stream"))
    }
}

/// Asks for what followed an event; `None` if that cannot be had.
///
/// That there is no response is nobody's fault: a stream with nothing to say may begin with its first event.
async fn resume(session: &Session, last: &str) -> Result<Option<RawHttpResponse>, NotPassed> {
    let reply = stream(session)?.header("last-event-id", last).send().await;
    let reply = reply.map_err(NotPassed::as_not_tested)?;
    Ok(Some(reply).filter(|reply| reply.status == 200 && reply.is_stream()))
}

/// Reads all events of a stream, until none comes for so long.
async fn read(
    ctx: &CheckContext,
    mut reply: RawHttpResponse,
    response_timeout: Duration,
) -> Vec<usize> {
    let until = Instant::now() + ctx.options.response_timeout;
    let mut events = Vec::new();
    while let StreamEvent::Message(at) = reply
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
        .ok_or_else(|| NotPassed::not_applicable("events have no ids to resume from"))
}
