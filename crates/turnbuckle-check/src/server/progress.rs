//! Progress of requests.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{Message, answers, messages, received};
use crate::rule::{Area, Rule};
use crate::tape::{Tape, Way};
use crate::trials::{Trial, Trials};
use crate::visit::Visit;

/// The name of the notification.
const PROGRESS: &str = "notifications/progress";

/// A call that takes so long is worth a conversation of its own.
const SLOW: Duration = Duration::from_secs(2);

pub(crate) const RULES: &[Rule] = &[
    Rule::server("progress.known-token", Area::Progress, &["progress.token.active"])
        .says("Progress is reported under the token that the request has given, and only if it has given one.")
        .cure("Repeat the value of `progressToken` as it came, with its type, and report nothing for requests without one.")
        .ask(|visit| Box::pin(known_token(visit))),
    Rule::server("progress.increases", Area::Progress, &["progress.increase"])
        .says("Each report of progress has a greater value than the one before.")
        .cure("Leave out reports whose value does not exceed the last one.")
        .ask(|visit| Box::pin(increases(visit))),
    Rule::server("progress.ends-with-answer", Area::Progress, &["progress.stop"])
        .says("No progress is reported for a request that has been answered.")
        .cure("Stop reporting before the answer is sent.")
        .ask(|visit| Box::pin(ends_with_answer(visit))),
];

async fn known_token(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let reporting = reporting(visit, trials)?;
    let reports = Reports::of(&visit.tape);
    for message in &reports.all {
        let token = &message.value["params"]["progressToken"];
        if reports.request_of(message).is_none() {
            let what = format!("progress for the token {token}, which no request has given");
            return Err(Unmet::broken(what, [message.at]));
        }
    }
    // A number has to stay one, and silence is as it should be where nobody asks.
    let number = visit.tape.len() + 1_000;
    let (numbered, silent) = both(visit, reporting, number).await?;
    for (at, message) in numbered.heard(visit, PROGRESS) {
        let token = &message["params"]["progressToken"];
        if *token != json!(number) && is_token(token) {
            let what = format!("progress for the token {token} instead of {number}");
            return Err(Unmet::broken(what, numbered.entries().chain([at])));
        }
    }
    // A report of the call before may come late, which is for another rule to judge.
    let late = |message: &Value| message["params"]["progressToken"] == json!(number);
    let mut heard = silent.heard(visit, PROGRESS).into_iter();
    match heard.find(|(_, message)| !late(message)) {
        Some((at, _)) => Err(Unmet::broken(
            "progress of a request that has given no token",
            silent.entries().chain([at]),
        )),
        None => Seen::at(numbered.entries().chain(silent.entries())),
    }
}

/// Makes a call with a number for a token, and one without a token; side by side if it is slow.
async fn both(visit: &Visit, trial: &Trial, number: usize) -> Result<(Trial, Trial), Unmet> {
    let session = visit.session().await?;
    let (call, token) = (&trial.call, json!({ "progressToken": number }));
    if trial.took < SLOW {
        let numbered = Trial::make(visit, session, call, token).await;
        return Ok((numbered, Trial::make(visit, session, call, json!({})).await));
    }
    let other = visit.fresh().await?;
    Ok(tokio::join!(
        Trial::make(visit, session, call, token),
        Trial::make(visit, &other, call, json!({})),
    ))
}

async fn increases(visit: &Visit) -> Outcome {
    reporting(visit, visit.trials().await?)?;
    let mut last: HashMap<String, (f64, usize)> = HashMap::new();
    let mut seen = Vec::new();
    let reports = Reports::of(&visit.tape);
    for message in &reports.all {
        let params = &message.value["params"];
        let Some(value) = params["progress"].as_f64() else {
            continue;
        };
        if reports.request_of(message).is_none() {
            continue;
        }
        let before = last.insert(params["progressToken"].to_string(), (value, message.at));
        match before {
            Some((before, at)) if value <= before => {
                let what = format!("progress of {value} after {before}");
                return Err(Unmet::broken(what, [at, message.at]));
            }
            Some(_) => seen.push(message.at),
            None => {}
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("no call reported progress twice")),
        false => Seen::at(seen.into_iter().take(2)),
    }
}

async fn ends_with_answer(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    reporting(visit, trials)?;
    trials.session.listen(visit.options.silence).await;
    none_is_late(&visit.tape)
}

/// Makes sure that no report comes after the answer, as far as that can be told.
fn none_is_late(tape: &Tape) -> Outcome {
    let mut seen = Vec::new();
    let reports = Reports::of(tape);
    let answers: Vec<_> = answers(tape).collect();
    for message in &reports.all {
        let Some(request) = reports.request_of(message) else {
            continue;
        };
        let answer = answers
            .iter()
            .find(|answer| answer.entry.answers == Some(request.at));
        let Some(answer) = answer else {
            continue;
        };
        // A call that became a task goes on under its token.
        if answer.value["result"].get("task").is_some() {
            continue;
        }
        // Of two streams of HTTP, what is read first need not have been sent first.
        if message.entry.channel != answer.entry.channel {
            continue;
        }
        if message.at > answer.at {
            let what = "progress of a request that was answered before";
            return Err(Unmet::broken(what, [answer.at, message.at]));
        }
        seen.extend([message.at, answer.at]);
    }
    Seen::at(seen.into_iter().take(2))
}

/// Returns a call that reported progress.
fn reporting<'a>(visit: &Visit, trials: &'a Trials) -> Result<&'a Trial, Unmet> {
    let reporting = trials.that_sent(visit, PROGRESS);
    let swift = reporting.into_iter().min_by_key(|trial| trial.took);
    swift.ok_or_else(|| trials.none("reports progress"))
}

/// The reports whose shape is right, and the requests that gave a token.
struct Reports {
    all: Vec<Message>,
    requests: Vec<Message>,
}

impl Reports {
    fn of(tape: &Tape) -> Self {
        let mut all = received(tape, PROGRESS);
        all.retain(|message| is_token(&message.value["params"]["progressToken"]));
        let requests = messages(tape, Way::Sent)
            .filter(|message| is_token(&message.value["params"]["_meta"]["progressToken"]))
            .collect();
        Self { all, requests }
    }

    /// Returns the request that has given the token of a report before.
    fn request_of(&self, report: &Message) -> Option<&Message> {
        let token = &report.value["params"]["progressToken"];
        let mut requests = self.requests.iter();
        requests.find(|request| {
            request.at < report.at && request.value["params"]["_meta"]["progressToken"] == *token
        })
    }
}

fn is_token(token: &Value) -> bool {
    token.is_string() || token.is_number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Entry;

    /// A call, its answer, and then a report on this channel.
    fn reported_after(channel: usize) -> Outcome {
        let tape = Tape::default();
        let call = json!({ "id": 1, "method": "tools/call", "params": { "_meta": { "progressToken": "a" } } });
        let sent = tape.push(Entry::sent(1, call.to_string()));
        tape.push(Entry {
            answers: Some(sent),
            ..Entry::received(1, json!({ "id": 1, "result": {} }).to_string())
        });
        let params = json!({ "progressToken": "a", "progress": 1 });
        let report = json!({ "method": PROGRESS, "params": params });
        tape.push(Entry::received(channel, report.to_string()));
        none_is_late(&tape)
    }

    #[test]
    fn a_report_after_the_answer_is_late() {
        assert!(matches!(reported_after(1), Err(Unmet::Broken { .. })));
    }

    #[test]
    fn a_report_on_another_stream_may_have_been_sent_before() {
        assert!(matches!(reported_after(2), Err(Unmet::NotTested(_))));
    }
}
