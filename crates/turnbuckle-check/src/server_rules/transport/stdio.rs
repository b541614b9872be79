//! stdio: lines of messages, and the end of the process.

use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;
use turnbuckle_client::stdio::Process;

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
    .requirement("The server writes only messages to standard output.")
    .hint("Write logs and banners to standard error; look for libraries that print.")
    .transports(Transports::Ndjson)
    .passive(only_messages),
    Rule::server(
        "stdio.one-line",
        Area::Stdio,
        &["stdio.framing.no-embedded", "stdio.framing.newline"],
    )
    .requirement("The server writes each message as one line.")
    .hint("Write each message as compact JSON without line breaks, followed by one line break.")
    .transports(Transports::Ndjson)
    .passive(one_line),
    Rule::server("stdio.utf8", Area::Stdio, &["base.encoding.utf8"])
        .requirement("Messages are UTF-8.")
        .hint("Write messages in UTF-8, whatever the system's encoding is.")
        .transports(Transports::Ndjson)
        .passive(utf8),
    Rule::server(
        "stdio.ends-with-input",
        Area::Stdio,
        &["stdio.shutdown.server-eof"],
    )
    .requirement("The process exits when its input is closed.")
    .hint("Exit when standard input ends, and let no timer or thread keep the process alive.")
    .transports(Transports::Stdio)
    .active(|ctx| Box::pin(exits_at_end_of_input(ctx))),
    Rule::server("stdio.ends-on-request", Area::Stdio, &[])
        .requirement("The process exits on SIGTERM.")
        .hint("Exit on SIGTERM; otherwise clients have to kill the process.")
        .transports(Transports::Stdio)
        .active(|ctx| Box::pin(exits_on_sigterm(ctx))),
    Rule::server("stdio.answers-before-leaving", Area::Stdio, &[])
        .requirement("The server responds to requests that it received before its input was closed.")
        .hint("Respond to all received requests and flush the output before exiting at the end of the input.")
        .transports(Transports::Ndjson)
        .active(|ctx| Box::pin(responds_before_exit(ctx))),
];

fn only_messages(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let lines = received(transcript);
    let other_line = lines.iter().find(|(_, line)| {
        let message = line
            .json()
            .is_some_and(|value| value.is_object() || value.is_array());
        !message && line.part_of.is_none()
    });
    match other_line {
        Some((number, line)) => {
            let shown: String = line.text.chars().take(80).collect();
            let observed = format!("a line that is not a message: {shown:?}");
            Err(NotPassed::violation(observed, [*number]))
        }
        None => Evidence::from_entries(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

fn one_line(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let lines = received(transcript);
    let Some(message) = lines.iter().find_map(|(_, line)| line.part_of) else {
        return Evidence::from_entries(lines.iter().map(|(number, _)| *number).take(3));
    };
    let parts = lines
        .iter()
        .filter(|(_, line)| line.part_of == Some(message));
    let parts: Vec<_> = parts.map(|(number, _)| *number).collect();
    let observed = format!("a message of {} lines", parts.len());
    Err(NotPassed::violation(observed, parts.into_iter().take(8)))
}

fn utf8(_: &CheckContext, transcript: &Transcript) -> Outcome {
    let lines = received(transcript);
    match lines.iter().find(|(_, line)| line.invalid_utf8) {
        Some((number, _)) => Err(NotPassed::violation("a line that is not UTF-8", [*number])),
        None => Evidence::from_entries(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

/// Returns the received lines.
fn received(transcript: &Transcript) -> Vec<(usize, TranscriptEntry)> {
    let mut lines = transcript.all();
    lines.retain(|(_, entry)| entry.direction == Direction::Received && entry.head.is_none());
    lines
}

async fn exits_at_end_of_input(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let line = session.ndjson()?;
    let process = line.process().ok_or_else(no_process)?;
    line.close_input().await;
    match wait_for_exit(ctx, process).await {
        Ok(()) => Evidence::from_entries(opened(&session)),
        Err(grace) => {
            let observed = format!("the process still runs {grace:?} after the end of its input");
            Err(NotPassed::violation(observed, opened(&session)))
        }
    }
}

async fn exits_on_sigterm(ctx: &CheckContext) -> Outcome {
    if !cfg!(unix) {
        return Err(NotPassed::not_applicable(
            "this platform does not support SIGTERM",
        ));
    }
    let session = ctx.new_session().await?;
    let process = session.ndjson()?.process().ok_or_else(no_process)?;
    process.terminate();
    match wait_for_exit(ctx, process).await {
        Ok(()) => Evidence::from_entries(opened(&session)),
        Err(grace) => {
            let observed = format!("the process still runs {grace:?} after SIGTERM");
            Err(NotPassed::violation(observed, opened(&session)))
        }
    }
}

/// Waits for the end of a process, the second time while no other session sends; returns how long if it still runs.
async fn wait_for_exit(ctx: &CheckContext, process: &Process) -> Result<(), Duration> {
    let first = ctx.pace.process_timeout();
    if timeout(first, process.wait()).await.is_ok() {
        return Ok(());
    }
    let _paused = ctx.pace.pause_other_sessions().await;
    let again = ctx.pace.process_timeout();
    let exited = timeout(again, process.wait()).await;
    exited.map(drop).map_err(|_| first + again)
}

/// A server on a busy machine may lose a response that it sends otherwise, so only repeated losses count.
async fn responds_before_exit(ctx: &CheckContext) -> Outcome {
    const ATTEMPTS: usize = 3;
    let mut outcome = response_before_exit(ctx).await;
    for _ in 1..ATTEMPTS {
        if !matches!(outcome, Err(NotPassed::Violation { .. })) {
            break;
        }
        outcome = response_before_exit(ctx).await;
    }
    outcome
}

async fn response_before_exit(ctx: &CheckContext) -> Outcome {
    let session = ctx.new_session().await?;
    let pending = session
        .send_request(session.request_builder.noop_method(), Value::Null)
        .await?;
    session.ndjson()?.close_input().await;
    session.wait_response(pending).await?.evidence()
}

fn no_process() -> NotPassed {
    NotPassed::not_applicable("the checker did not start the server")
}

/// Returns the entries of the start of a session.
fn opened(session: &Session) -> impl Iterator<Item = usize> {
    session.opening.iter().flat_map(ProbeResponse::entries)
}
