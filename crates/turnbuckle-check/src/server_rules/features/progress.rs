//! Progress of requests.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::{Direction, Transcript},
        transcript_query::{TranscriptMessage, messages, received, responses},
    },
    probe::tool_runs::{ToolRun, ToolRuns},
    rule::{Area, Rule},
};

/// The name of the notification.
const PROGRESS: &str = "notifications/progress";

/// A call that takes so long is worth a conversation of its own.
const SLOW: Duration = Duration::from_secs(2);

pub(crate) const RULES: &[Rule] = &[
    Rule::server("progress.known-token", Area::Progress, &["progress.token.active"])
        .requirement("Progress is reported under the token that the request has given, and only if it has given one.")
        .fix("Repeat the value of `progressToken` as it came, with its type, and report nothing for requests without one.")
        .active(|ctx| Box::pin(known_token(ctx))),
    Rule::server("progress.increases", Area::Progress, &["progress.increase"])
        .requirement("Each report of progress has a greater value than the one before.")
        .fix("Leave out reports whose value does not exceed the last one.")
        .active(|ctx| Box::pin(increases(ctx))),
    Rule::server("progress.ends-with-answer", Area::Progress, &["progress.stop"])
        .requirement("No progress is reported for a request that has been answered.")
        .fix("Stop reporting before the answer is sent.")
        .active(|ctx| Box::pin(ends_with_answer(ctx))),
];

async fn known_token(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let reporting = reporting(ctx, tool_runs)?;
    let reports = ProgressReports::collect(&ctx.transcript);
    for message in &reports.all {
        let token = &message.value["params"]["progressToken"];
        if reports.request_of(message).is_none() {
            let observed = format!("progress for the token {token}, which no request has given");
            return Err(NotPassed::violation(observed, [message.at]));
        }
    }
    // A number has to stay one, and silence is as it should be where nobody asks.
    let number = ctx.transcript.len() + 1_000;
    let (numbered, silent) = both(ctx, reporting, number).await?;
    for (at, message) in numbered.notifications(ctx, PROGRESS) {
        let token = &message["params"]["progressToken"];
        if *token != json!(number) && is_token(token) {
            let observed = format!("progress for the token {token} instead of {number}");
            return Err(NotPassed::violation(
                observed,
                numbered.entries().chain([at]),
            ));
        }
    }
    // A report of the call before may come late, which is for another rule to judge.
    let late = |message: &Value| message["params"]["progressToken"] == json!(number);
    let mut heard = silent.notifications(ctx, PROGRESS).into_iter();
    match heard.find(|(_, message)| !late(message)) {
        Some((at, _)) => Err(NotPassed::violation(
            "progress of a request that has given no token",
            silent.entries().chain([at]),
        )),
        None => Evidence::from_entries(numbered.entries().chain(silent.entries())),
    }
}

/// Makes a call with a number for a token, and one without a token; side by side if it is slow.
async fn both(
    ctx: &CheckContext,
    run: &ToolRun,
    number: usize,
) -> Result<(ToolRun, ToolRun), NotPassed> {
    let session = ctx.session().await?;
    let (call, token) = (&run.call, json!({ "progressToken": number }));
    if run.duration < SLOW {
        let numbered = ToolRun::run(ctx, session, call, token).await;
        return Ok((numbered, ToolRun::run(ctx, session, call, json!({})).await));
    }
    let other = ctx.new_session().await?;
    Ok(tokio::join!(
        ToolRun::run(ctx, session, call, token),
        ToolRun::run(ctx, &other, call, json!({})),
    ))
}

async fn increases(ctx: &CheckContext) -> Outcome {
    reporting(ctx, ctx.tool_runs().await?)?;
    let mut last: HashMap<String, (f64, usize)> = HashMap::new();
    let mut evidence = Vec::new();
    let reports = ProgressReports::collect(&ctx.transcript);
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
                let observed = format!("progress of {value} after {before}");
                return Err(NotPassed::violation(observed, [at, message.at]));
            }
            Some(_) => evidence.push(message.at),
            None => {}
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("no call reported progress twice"))
    } else {
        Evidence::from_entries(evidence.into_iter().take(2))
    }
}

async fn ends_with_answer(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    reporting(ctx, tool_runs)?;
    tool_runs.session.listen(ctx.options.quiet_period).await;
    none_is_late(&ctx.transcript)
}

/// Makes sure that no report comes after the answer, as far as that can be told.
fn none_is_late(transcript: &Transcript) -> Outcome {
    let mut evidence = Vec::new();
    let reports = ProgressReports::collect(transcript);
    let responses: Vec<_> = responses(transcript).collect();
    for message in &reports.all {
        let Some(request) = reports.request_of(message) else {
            continue;
        };
        let response = responses
            .iter()
            .find(|response| response.entry.response_to == Some(request.at));
        let Some(response) = response else {
            continue;
        };
        // A call that became a task goes on under its token.
        if response.value["result"].get("task").is_some() {
            continue;
        }
        // Of two streams of HTTP, what is read first need not have been sent first.
        if message.entry.channel != response.entry.channel {
            continue;
        }
        if message.at > response.at {
            let observed = "progress of a request that was answered before";
            return Err(NotPassed::violation(observed, [response.at, message.at]));
        }
        evidence.extend([message.at, response.at]);
    }
    Evidence::from_entries(evidence.into_iter().take(2))
}

/// Returns a call that reported progress.
fn reporting<'a>(ctx: &CheckContext, tool_runs: &'a ToolRuns) -> Result<&'a ToolRun, NotPassed> {
    let reporting = tool_runs.that_sent(ctx, PROGRESS);
    let swift = reporting.into_iter().min_by_key(|run| run.duration);
    swift.ok_or_else(|| tool_runs.none("reports progress"))
}

/// The reports whose shape is right, and the requests that gave a token.
struct ProgressReports {
    all: Vec<TranscriptMessage>,
    requests: Vec<TranscriptMessage>,
}

impl ProgressReports {
    fn collect(transcript: &Transcript) -> Self {
        let mut all = received(transcript, PROGRESS);
        all.retain(|message| is_token(&message.value["params"]["progressToken"]));
        let requests = messages(transcript, Direction::Sent)
            .filter(|message| is_token(&message.value["params"]["_meta"]["progressToken"]))
            .collect();
        Self { all, requests }
    }

    /// Returns the request that has given the token of a report before.
    fn request_of(&self, report: &TranscriptMessage) -> Option<&TranscriptMessage> {
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
    use crate::engine::transcript::TranscriptEntry;

    /// A call, its answer, and then a report on this channel.
    fn reported_after(channel: usize) -> Outcome {
        let transcript = Transcript::default();
        let call = json!({ "id": 1, "method": "tools/call", "params": { "_meta": { "progressToken": "a" } } });
        let sent = transcript.push(TranscriptEntry::sent(1, call.to_string()));
        transcript.push(TranscriptEntry {
            response_to: Some(sent),
            ..TranscriptEntry::received(1, json!({ "id": 1, "result": {} }).to_string())
        });
        let params = json!({ "progressToken": "a", "progress": 1 });
        let report = json!({ "method": PROGRESS, "params": params });
        transcript.push(TranscriptEntry::received(channel, report.to_string()));
        none_is_late(&transcript)
    }

    #[test]
    fn a_report_after_the_answer_is_late() {
        assert!(matches!(
            reported_after(1),
            Err(NotPassed::Violation { .. })
        ));
    }

    #[test]
    fn a_report_on_another_stream_may_have_been_sent_before() {
        assert!(matches!(reported_after(2), Err(NotPassed::NotTested(_))));
    }
}
