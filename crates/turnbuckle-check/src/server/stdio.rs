//! Lines: one message each, and nothing else.

use serde_json::Value;
use tokio::time::timeout;

use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, On, Rule};
use crate::session::{Answer, Session};
use crate::tape::{Entry, Tape, Way};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server(
        "stdio.only-messages",
        Area::Stdio,
        &["stdio.stdout.only-mcp"],
    )
    .says("Nothing but messages comes on standard output.")
    .cure("Write logs and banners to standard error; look for libraries that print.")
    .on(On::Lines)
    .look(only_messages),
    Rule::server(
        "stdio.one-line",
        Area::Stdio,
        &["stdio.framing.newline", "stdio.framing.no-embedded"],
    )
    .says("A message is one line.")
    .cure("Write each message as compact JSON without line breaks, and end it with one.")
    .on(On::Lines)
    .look(one_line),
    Rule::server("stdio.utf8", Area::Stdio, &["base.encoding.utf8"])
        .says("Messages are UTF-8.")
        .cure("Write messages in UTF-8, whatever the encoding of the system is.")
        .on(On::Lines)
        .look(utf8),
    Rule::server(
        "stdio.ends-with-input",
        Area::Stdio,
        &["stdio.shutdown.server-eof"],
    )
    .says("The process ends when its input is closed.")
    .cure("Leave when standard input ends, and let no timer or thread keep the process alive.")
    .on(On::Stdio)
    .ask(|visit| Box::pin(ends_with_input(visit))),
    Rule::server("stdio.ends-on-request", Area::Stdio, &[])
        .says("The process ends when it is asked to by SIGTERM.")
        .cure("Leave on SIGTERM; otherwise clients have to kill the process.")
        .on(On::Stdio)
        .ask(|visit| Box::pin(ends_on_request(visit))),
    Rule::server("stdio.answers-before-leaving", Area::Stdio, &[])
        .says("What was asked before the input was closed is still answered.")
        .cure("Answer what was read, and flush, before you leave at the end of the input.")
        .on(On::Lines)
        .ask(|visit| Box::pin(answers_before_leaving(visit))),
];

/// How many lines are joined to see whether they make a message together.
const JOINED: usize = 1000;

/// How often that is tried in vain before nobody believes it any more.
const TRIED: usize = 16;

fn only_messages(_: &Visit, tape: &Tape) -> Outcome {
    let lines = received(tape);
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
            let what = format!("a line that is no message: {shown:?}");
            Err(Unmet::broken(what, [*number]))
        }
        None => Seen::at(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

fn one_line(_: &Visit, tape: &Tape) -> Outcome {
    let lines = received(tape);
    match split_messages(&lines).first() {
        Some(parts) => {
            let what = format!("a message of {} lines", parts.len());
            Err(Unmet::broken(what, parts.iter().copied().take(8)))
        }
        None => Seen::at(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

fn utf8(_: &Visit, tape: &Tape) -> Outcome {
    let lines = received(tape);
    match lines.iter().find(|(_, line)| line.garbled) {
        Some((number, _)) => Err(Unmet::broken("a line that is not UTF-8", [*number])),
        None => Seen::at(lines.iter().map(|(number, _)| *number).take(3)),
    }
}

/// Returns the lines that were received.
fn received(tape: &Tape) -> Vec<(usize, Entry)> {
    let mut lines = tape.all();
    lines.retain(|(_, entry)| entry.way == Way::Received && entry.head.is_none());
    lines
}

/// Returns the messages that came in more than one line, each as the numbers of its lines.
fn split_messages(lines: &[(usize, Entry)]) -> Vec<Vec<usize>> {
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
        let same = |(_, line): &&(usize, Entry)| line.channel == first.channel;
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

async fn ends_with_input(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let line = session.line()?;
    let process = line.process().ok_or_else(no_process)?;
    line.close_input().await;
    let grace = visit.options.patience;
    match timeout(grace, process.died()).await {
        Ok(_) => Seen::at(opened(&session)),
        Err(_) => {
            let what = format!("the process still runs {grace:?} after its input was closed");
            Err(Unmet::broken(what, opened(&session)))
        }
    }
}

async fn ends_on_request(visit: &Visit) -> Outcome {
    if !cfg!(unix) {
        return Err(Unmet::not_applicable("there are no signals here"));
    }
    let session = visit.fresh().await?;
    let process = session.line()?.process().ok_or_else(no_process)?;
    process.terminate();
    let grace = visit.options.patience;
    match timeout(grace, process.died()).await {
        Ok(_) => Seen::at(opened(&session)),
        Err(_) => {
            let what = format!("the process still runs {grace:?} after SIGTERM");
            Err(Unmet::broken(what, opened(&session)))
        }
    }
}

async fn answers_before_leaving(visit: &Visit) -> Outcome {
    let session = visit.fresh().await?;
    let pending = session
        .begin(session.speech.harmless(), Value::Null)
        .await?;
    session.line()?.close_input().await;
    session.answer(pending).await?.seen()
}

fn no_process() -> Unmet {
    Unmet::not_applicable("the server is no process of ours")
}

/// Returns the entries of the beginning of a conversation.
fn opened(session: &Session) -> impl Iterator<Item = usize> {
    session.opening.iter().flat_map(Answer::entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<(usize, Entry)> {
        let entries = texts.iter().map(|text| Entry::received(0, *text));
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
