//! Streams that are opened to see what becomes of them.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{no_stream, seen::streams};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::server::http::stream;
use crate::session::Session;
use crate::trials::{Trial, Trials, token};
use crate::visit::Visit;
use crate::wire::http::{Draft, Event, Reply};

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

pub(super) async fn answer_comes(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let draft = streaming(visit, &session).await?;
    let answer = session.exchange(draft).await?;
    match answer.value.is_null() {
        false => answer.seen(),
        true => Err(answer.broken("the stream ends without the answer")),
    }
}

pub(super) async fn ends(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let draft = streaming(visit, &session).await?;
    let id = draft.id();
    let mut reply = open(draft).await?;
    let mut answered = None;
    let mut until = Instant::now() + visit.options.patience;
    loop {
        match (reply.event_until(until).await, answered) {
            (Event::Message(at), None) => {
                let message = visit.tape.entry(at).json().unwrap_or_default();
                if message.get("method").is_none() && message.get("id") == id.as_ref() {
                    answered = Some(at);
                    until = Instant::now() + ENDING;
                }
            }
            (Event::Message(at), Some(_)) if visit.tape.entry(at).text.is_empty() => {}
            (Event::Message(at), Some(answer)) => {
                let what = "another message after the answer";
                return Err(Unmet::broken(what, [reply.sent, answer, at]));
            }
            (Event::End, Some(answer)) => return Seen::at([reply.sent, answer]),
            (Event::Silence, Some(answer)) => {
                let what = format!("the stream is still open {ENDING:?} after the answer");
                return Err(Unmet::broken(what, [reply.sent, answer]));
            }
            (Event::Cut(why), Some(answer)) => {
                let what = format!("the stream breaks off: {why}");
                return Err(Unmet::broken(what, [reply.sent, answer]));
            }
            (Event::End | Event::Silence | Event::Cut(_), None) => {
                return Err(Unmet::not_tested("the answer did not come on the stream"));
            }
        }
    }
}

pub(super) async fn replays_own(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let draft = streaming(visit, &session).await?;
    let id = draft.id();
    let first = read(visit, open(draft).await?, visit.options.patience).await;
    let other = streaming(visit, &session).await?;
    let other_id = other.id();
    let second = read(visit, open(other).await?, visit.options.patience).await;
    let last = first_id(visit, &first)?;
    let Some(resumed) = resume(&session, &last).await? else {
        return Err(Unmet::not_applicable(
            "a stream that has ended is not resumed",
        ));
    };
    let entries = resumed.entries();
    let replayed = read(visit, resumed, visit.options.silence).await;
    for &at in &replayed {
        let message = visit.tape.entry(at).json().unwrap_or_default();
        let foreign = message.get("method").is_none()
            && message.get("id") == other_id.as_ref()
            && other_id != id;
        if foreign {
            let what = format!(
                "the answer to {} on the stream of {}",
                message["id"],
                id.unwrap_or_default()
            );
            return Err(Unmet::broken(what, entries.into_iter().chain([at])));
        }
    }
    Seen::at(
        entries
            .into_iter()
            .chain(replayed)
            .chain(second.into_iter().take(1)),
    )
}

pub(super) async fn survives(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let (draft, took) = long(visit, &session).await?;
    let id = draft.id();
    let mut reply = open(draft).await?;
    let Event::Message(first) = reply.event(visit.options.patience).await else {
        return Err(Unmet::not_tested("nothing comes before the answer"));
    };
    let sent = reply.sent;
    let last = first_id(visit, &[first])?;
    drop(reply);
    let until = Instant::now() + took * 2 + ENDING;
    let mut seen = vec![sent, first];
    let mut last = last;
    // A server may close a connection again before the answer is there: then it is asked again, as before.
    for again in 0..RESUMPTIONS {
        let Some(mut resumed) = resume(&session, &last).await? else {
            match again {
                0 => return Err(Unmet::not_applicable("streams are not resumed")),
                _ => break,
            }
        };
        seen.extend(resumed.entries());
        while let Event::Message(at) = resumed.event_until(until).await {
            let entry = visit.tape.entry(at);
            let message = entry.json().unwrap_or_default();
            if message.get("method").is_none() && message.get("id") == id.as_ref() {
                return Seen::at([sent, resumed.sent, at]);
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
    let what = "no answer comes after the connection was lost";
    Err(Unmet::broken(what, seen))
}

/// Makes up a request that is known to be answered with a stream, and only reads.
async fn streaming(visit: &Visit, session: &Session) -> Result<Draft, Unmet> {
    // What comes of calls is on the tape then; that none can be made is no trouble here.
    let quickest = match visit.trials().await {
        Ok(trials) => quickest(visit, trials, Duration::ZERO),
        Err(_) => None,
    };
    let all = streams(&visit.tape);
    let right = all
        .iter()
        .filter(|stream| !visit.tape.entry(stream.sent).deliberate);
    let asked: Vec<_> = right.filter(|stream| stream.answers_request()).collect();
    let named = |name: &&str| {
        let found = asked
            .iter()
            .find(|stream| stream.request["method"] == **name);
        found.map(|stream| stream.sent)
    };
    let harmless = HARMLESS.iter().find_map(named);
    let sent = harmless.or(quickest.map(|(sent, _)| sent));
    again(visit, session, sent.ok_or_else(no_stream)?)
}

/// Makes up the quickest call that is answered with a stream, and takes long enough to be in the middle of it.
async fn long(visit: &Visit, session: &Session) -> Result<(Draft, Duration), Unmet> {
    let trials = visit.trials().await?;
    match quickest(visit, trials, LONG) {
        Some((sent, took)) => Ok((again(visit, session, sent)?, took)),
        None => Err(trials.none("takes long and is answered with a stream")),
    }
}

/// Finds the quickest call that takes so long at least, asks nothing, and is answered with a stream.
fn quickest(visit: &Visit, trials: &Trials, least: Duration) -> Option<(usize, Duration)> {
    let all = streams(&visit.tape);
    let streamed = |trial: &Trial| {
        let [answer] = &trial.answers[..] else {
            return None;
        };
        let stream = all.iter().find(|stream| Some(stream.sent) == answer.sent)?;
        let asks = !trial.questions(visit).is_empty();
        (trial.took >= least && !asks).then_some((stream.sent, trial.took))
    };
    let found = trials.made.iter().filter_map(streamed);
    found.min_by_key(|(_, took)| *took)
}

/// Makes up a request that was made before.
fn again(visit: &Visit, session: &Session, sent: usize) -> Result<Draft, Unmet> {
    let entry = visit.tape.entry(sent);
    let mut message = entry.json().unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    if let Some(meta) = message["params"]["_meta"].as_object_mut() {
        meta.retain(|key, _| !session.speech.meta().contains_key(key));
        if let Some(progress) = meta.get_mut("progressToken") {
            *progress = token();
        }
    }
    let draft = session.draft(&method, message["params"].take())?;
    let headers = entry.head.map(|head| head.headers).unwrap_or_default();
    let repeated = headers
        .into_iter()
        .filter(|(name, _)| name.starts_with("mcp-param-"));
    Ok(draft.headers(repeated))
}

async fn open(draft: Draft) -> Result<Reply, Unmet> {
    let reply = draft.send().await?;
    match reply.status == 200 && reply.is_stream() {
        true => Ok(reply),
        false => Err(Unmet::not_tested("this time the answer is no stream")),
    }
}

/// Asks for what followed an event; `None` if that cannot be had.
///
/// That there is no response is nobody's fault: a stream with nothing to say may begin with its first event.
async fn resume(session: &Session, last: &str) -> Result<Option<Reply>, Unmet> {
    let reply = stream(session)?.header("last-event-id", last).send().await;
    let reply = reply.map_err(Unmet::aside)?;
    Ok(Some(reply).filter(|reply| reply.status == 200 && reply.is_stream()))
}

/// Reads all events of a stream, until none comes for so long.
async fn read(visit: &Visit, mut reply: Reply, patience: Duration) -> Vec<usize> {
    let until = Instant::now() + visit.options.patience;
    let mut events = Vec::new();
    while let Event::Message(at) = reply
        .event_until(until.min(Instant::now() + patience))
        .await
    {
        events.push(at);
    }
    events
}

/// Returns the id of the first event that has one.
fn first_id(visit: &Visit, events: &[usize]) -> Result<String, Unmet> {
    let ids = events.iter().filter_map(|&at| visit.tape.entry(at).event);
    let mut ids = ids.map(|event| event.id).filter(|id| !id.is_empty());
    ids.next()
        .ok_or_else(|| Unmet::not_applicable("events have no ids to resume from"))
}
