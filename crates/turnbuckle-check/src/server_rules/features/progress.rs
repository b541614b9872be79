//! Progress notifications.

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

/// The duration from which two calls run concurrently, each in its session.
const CONCURRENT_FROM: Duration = Duration::from_secs(2);

pub(crate) const RULES: &[Rule] = &[
    Rule::server("progress.known-token", Area::Progress, &["progress.token.active"])
        .requirement("The server reports progress only with a token that a request sent.")
        .hint("Return the value of `progressToken` unchanged, with its type, and send no progress for requests without one.")
        .active(|ctx| Box::pin(known_token(ctx))),
    Rule::server("progress.increases", Area::Progress, &["progress.increase"])
        .requirement("Each progress notification has a greater value than the previous one.")
        .hint("Skip notifications with a value that is not greater than the last one.")
        .active(|ctx| Box::pin(increases(ctx))),
    Rule::server("progress.ends-with-answer", Area::Progress, &["progress.stop"])
        .requirement("The server sends no progress for a request after its response.")
        .hint("Send no progress notifications after the response.")
        .active(|ctx| Box::pin(ends_with_response(ctx))),
];

async fn known_token(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let reporting = reporting(ctx, tool_runs)?;
    let reports = ProgressReports::collect(&ctx.transcript);
    for message in &reports.all {
        let token = &message.value["params"]["progressToken"];
        if reports.request_of(message).is_none() {
            let observed = format!("progress for the token {token}, which no request sent");
            return Err(NotPassed::violation(observed, [message.at]));
        }
    }
    // A numeric token stays a number, and a request without a token gets no progress.
    let number = ctx.transcript.len() + 1_000;
    let (with_number, without_token) = run_both(ctx, reporting, number).await?;
    for (at, message) in with_number.notifications(ctx, PROGRESS) {
        let token = &message["params"]["progressToken"];
        if *token != json!(number) && is_token(token) {
            let observed = format!("progress for the token {token} instead of {number}");
            return Err(NotPassed::violation(
                observed,
                with_number.entries().chain([at]),
            ));
        }
    }
    // Another rule checks late progress of the previous call.
    let is_late = |message: &Value| message["params"]["progressToken"] == json!(number);
    let mut received = without_token.notifications(ctx, PROGRESS).into_iter();
    match received.find(|(_, message)| !is_late(message)) {
        Some((at, _)) => Err(NotPassed::violation(
            "progress for a request without a token",
            without_token.entries().chain([at]),
        )),
        None => Evidence::from_entries(with_number.entries().chain(without_token.entries())),
    }
}

/// Makes a call with a numeric token and one without a token, concurrently if the call is slow.
async fn run_both(
    ctx: &CheckContext,
    run: &ToolRun,
    number: usize,
) -> Result<(ToolRun, ToolRun), NotPassed> {
    let session = ctx.session().await?;
    let (call, token) = (&run.call, json!({ "progressToken": number }));
    if run.duration < CONCURRENT_FROM {
        let with_number = ToolRun::run(ctx, session, call, token).await;
        return Ok((
            with_number,
            ToolRun::run(ctx, session, call, json!({})).await,
        ));
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

async fn ends_with_response(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    reporting(ctx, tool_runs)?;
    tool_runs.session.listen(ctx.pace.quiet_period()).await;
    check_none_is_late(&ctx.transcript)
}

/// Checks that no progress follows the response, as far as the order is known.
fn check_none_is_late(transcript: &Transcript) -> Outcome {
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
        // The task of a call continues with its token.
        if response.value["result"].get("task").is_some() {
            continue;
        }
        // Two HTTP streams are read in any order.
        if message.entry.channel != response.entry.channel {
            continue;
        }
        if message.at > response.at {
            let observed = "progress for a request after its response";
            return Err(NotPassed::violation(observed, [response.at, message.at]));
        }
        evidence.extend([message.at, response.at]);
    }
    Evidence::from_entries(evidence.into_iter().take(2))
}

/// Returns the shortest call that reported progress.
fn reporting<'a>(ctx: &CheckContext, tool_runs: &'a ToolRuns) -> Result<&'a ToolRun, NotPassed> {
    let reporting = tool_runs.that_sent(ctx, PROGRESS);
    let shortest = reporting.into_iter().min_by_key(|run| run.duration);
    shortest.ok_or_else(|| tool_runs.none("reports progress"))
}

/// The well-formed progress notifications, and the requests with a token.
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

    /// Returns the earlier request with the token of a notification.
    fn request_of(&self, notification: &TranscriptMessage) -> Option<&TranscriptMessage> {
        let token = &notification.value["params"]["progressToken"];
        let mut requests = self.requests.iter();
        requests.find(|request| {
            request.at < notification.at
                && request.value["params"]["_meta"]["progressToken"] == *token
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

    /// Checks a call, its response, and then progress on this channel.
    fn check_progress_on(channel: usize) -> Outcome {
        let transcript = Transcript::default();
        let call = json!({ "id": 1, "method": "tools/call", "params": { "_meta": { "progressToken": "a" } } });
        let sent = transcript.push(TranscriptEntry::sent(1, call.to_string()));
        transcript.push(TranscriptEntry {
            response_to: Some(sent),
            ..TranscriptEntry::received(1, json!({ "id": 1, "result": {} }).to_string())
        });
        let params = json!({ "progressToken": "a", "progress": 1 });
        let notification = json!({ "method": PROGRESS, "params": params });
        transcript.push(TranscriptEntry::received(channel, notification.to_string()));
        check_none_is_late(&transcript)
    }

    #[test]
    fn progress_after_the_response_is_a_violation() {
        assert!(matches!(
            check_progress_on(1),
            Err(NotPassed::Violation { .. })
        ));
    }

    #[test]
    fn progress_on_another_stream_may_have_been_sent_before_the_response() {
        assert!(matches!(check_progress_on(2), Err(NotPassed::NotTested(_))));
    }
}
