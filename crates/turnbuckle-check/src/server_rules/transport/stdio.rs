//! Lines: one message each, and nothing else.

use serde_json::Value;
use tokio::time::timeout;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript, TranscriptEntry},
    },
    rule::{Area, Rule, Transports},
    session::{ProbeResponse, Session},
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "stdio.only-messages",
        Area::Stdio,
        &["stdio.stdout.only-mcp"],
    )
    .requirement("Nothing but messages comes on standard output.")
    .fix("Write logs and banners to standard error; look for libraries that print.")
    .transports(Transports::Ndjson)
    .passive(only_messages),
    Rule::server(
        "stdio.one-line",
        Area::Stdio,
        &["stdio.framing.newline", "stdio.framing.no-embedded"],
    )
    .requirement("A message is one line.")
    .fix("Write each message as compact JSON without line breaks, and end it with one.")
    .transports(Transports::Ndjson)
    .passive(one_line),
    Rule::server("stdio.utf8", Area::Stdio, &["base.encoding.utf8"])
        .requirement("Messages are UTF-8.")
        .fix("Write messages in UTF-8, whatever the encoding of the system is.")
        .transports(Transports::Ndjson)
        .passive(utf8),
    Rule::server(
        "stdio.ends-with-input",
        Area::Stdio,
        &["stdio.shutdown.server-eof"],
    )
    .requirement("The process ends when its input is closed.")
    .fix("Leave when standard input ends, and let no timer or thread keep the process alive.")
    .transports(Transports::Stdio)
    .active(|ctx| Box::pin(ends_with_input(ctx))),
    Rule::server("stdio.ends-on-request", Area::Stdio, &[])
        .requirement("The process ends when it is asked to by SIGTERM.")
        .fix("Leave on SIGTERM; otherwise clients have to kill the process.")
        .transports(Transports::Stdio)
        .active(|ctx| Box::pin(ends_on_request(ctx))),
    Rule::server("stdio.answers-before-leaving", Area::Stdio, &[])
        .requirement("What was asked before the input was closed is still answered.")
        .fix("Answer what was read, and flush, before you leave at the end of the input.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(answers_before_leaving(ctx))),
];

/// How many lines are joined to see whether they make a message together.
const JOINED: usize = 1000;

/// How often that is tried in vain before nobody believes it any more.
const TRIED: usize = 16;

fn only_messages(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let lines = received(transcript);
    let broken = split_messages(&lines);
    let stray = lines.iter().find(|(number, line)| {
        let message = line
            .json()
            .is_some_and(|value| value.is_object() || value.is_array());
        !message && !broken.iter().any(|part| part.contains(number))
    });
    match stray {
        Some((number, line)) => {
            let shown: String = line.text.chars().take(80).collect();
            let observed = format!("a line that is no message: {shown:?}");
            Err(NotPassed::violation(observed, [*number]))
        }
        None => Evidence::from_entries(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

fn one_line(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let lines = received(transcript);
    match split_messages(&lines).first() {
        Some(parts) => {
            let observed = format!("a message of {} lines", parts.len());
            Err(NotPassed::violation(
                observed,
                parts.iter().copied().take(8),
            ))
        }
        None => Evidence::from_entries(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

fn utf8(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let lines = received(transcript);
    match lines.iter().find(|(_, line)| line.invalid_utf8) {
        Some((number, _)) => Err(NotPassed::violation("a line that is not UTF-8", [*number])),
        None => Evidence::from_entries(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

/// Returns the lines that were received.
fn received(transcript: &Transcript) -> Vec<(usize, TranscriptEntry)> {
    let mut lines = transcript.all();
    lines.retain(|(_, entry)| entry.direction == Direction::Received && entry.head.is_none());
    lines
}

/// Returns the messages that came in more than one line, each as the numbers of its lines.
fn split_messages(lines: &[(usize, TranscriptEntry)]) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut tried = 0;
    for (at, (_, first)) in lines.iter().enumerate() {
        if tried - found.len() == TRIED {
            break;
        }
        if !first.text.trim_start().starts_with('{') || first.json().is_some() {
            continue;
        }
        tried += 1;
        let same = |(_, line): &&(usize, TranscriptEntry)| line.channel == first.channel;
        let mut joined = String::new();
        let mut parts = Vec::new();
        for (number, line) in lines[at..].iter().filter(same).take(JOINED) {
            joined.push_str(&line.text);
            joined.push('\n');
            parts.push(*number);
            let closes = line.text.trim_end().ends_with('}');
            if closes && serde_json::from_str::<Value>(&joined).is_ok() {
                found.push(parts);
                break;
            }
        }
    }
    found
}

async fn ends_with_input(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let line = session.ndjson()?;
    let process = line.process().ok_or_else(no_process)?;
    line.close_input().await;
    let grace = ctx.options.response_timeout;
    match timeout(grace, process.wait()).await {
        Ok(_) => Evidence::from_entries(opened(&session)),
        Err(_) => {
            let observed = format!("the process still runs {grace:?} after its input was closed");
            Err(NotPassed::violation(observed, opened(&session)))
        }
    }
}

async fn ends_on_request(ctx: &CheckContext) -> Outcome {
    if !cfg!(unix) {
        return Err(NotPassed::not_applicable("there are no signals here"));
    }
    let session = ctx.new_session().await?;
    let process = session.ndjson()?.process().ok_or_else(no_process)?;
    process.terminate();
    let grace = ctx.options.response_timeout;
    match timeout(grace, process.wait()).await {
        Ok(_) => Evidence::from_entries(opened(&session)),
        Err(_) => {
            let observed = format!("the process still runs {grace:?} after SIGTERM");
            Err(NotPassed::violation(observed, opened(&session)))
        }
    }
}

async fn answers_before_leaving(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let pending = session
        .send_request(session.request_builder.noop_method(), Value::Null)
        .await?;
    session.ndjson()?.close_input().await;
    session.wait_response(pending).await?.evidence()
}

fn no_process() -> NotPassed {
    NotPassed::not_applicable("the server is no process of ours")
}

/// Returns the entries of the beginning of a conversation.
fn opened(session: &Session) -> impl Iterator<Item = usize> {
    session.opening.iter().flat_map(ProbeResponse::entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<(usize, TranscriptEntry)> {
        let entries = texts.iter().map(|text| TranscriptEntry::received(0, *text));
        entries.enumerate().collect()
    }

    #[test]
    fn a_message_in_two_lines_is_found() {
        let split = split_messages(&lines(&["{}", "{\"a\":", "1}", "{"]));

        assert_eq!(split, [[1, 2]]);
    }

    #[test]
    fn whoever_never_ends_a_message_is_not_looked_at_for_ever() {
        let mut texts = vec!["{"; TRIED];
        texts.extend(["{\"a\":", "1}"]);

        assert!(split_messages(&lines(&texts)).is_empty());
    }
}
