//! Requests that come back with answers.

use serde_json::{Value, json};

use super::capability_for;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript::Direction,
        transcript_query::{TranscriptMessage, messages},
    },
    probe::tool_runs::{ToolRun, call_tool, next_progress_token},
    session::ProbeResponse,
};

pub(super) fn only_where_allowed(ctx: &CheckContext) -> Outcome {
    let runs_with_requests = runs_with_requests(ctx)?;
    for message in &runs_with_requests {
        let request = message
            .entry
            .response_to
            .map(|sent| ctx.transcript.entry(sent));
        let request = request.and_then(|entry| entry.json()).unwrap_or_default();
        let method = request["method"].as_str();
        let allowed = ["tools/call", "prompts/get", "resources/read"];
        if let Some(method) = method.filter(|method| !allowed.contains(method)) {
            let observed = format!("`{method}` is answered with `input_required`");
            return Err(NotPassed::violation(
                observed,
                message.entry.response_to.into_iter().chain([message.at]),
            ));
        }
    }
    Evidence::from_entries(runs_with_requests.iter().map(|message| message.at).take(3))
}

pub(super) fn asks_for_something(ctx: &CheckContext) -> Outcome {
    let runs_with_requests = runs_with_requests(ctx)?;
    for message in &runs_with_requests {
        let result = &message.value["result"];
        let requests = result["inputRequests"].as_object();
        if result.get("inputRequests").is_none() && result.get("requestState").is_none() {
            return Err(NotPassed::violation(
                "neither questions nor a state",
                [message.at],
            ));
        }
        for request in requests.into_iter().flat_map(|requests| requests.values()) {
            let Some(method) = request["method"].as_str() else {
                continue;
            };
            if capability_for(method).is_none() {
                return Err(NotPassed::violation(
                    format!("`{method}` is asked for"),
                    [message.at],
                ));
            }
        }
    }
    Evidence::from_entries(runs_with_requests.iter().map(|message| message.at).take(3))
}

pub(super) async fn asks_again(ctx: &CheckContext) -> Outcome {
    let (run, mut params) = first_retry(ctx).await?;
    params["inputResponses"] = json!({});
    let response = retry(ctx, run, params, false).await?;
    response.result()?;
    response.evidence()
}

pub(super) async fn ignores_surplus(ctx: &CheckContext) -> Outcome {
    let (run, mut params) = first_retry(ctx).await?;
    params["inputResponses"]["check_nobody_asked"] = json!({ "action": "decline" });
    let response = retry(ctx, run, params, false).await?;
    response.result()?;
    response.evidence()
}

pub(super) async fn malformed_answers(ctx: &CheckContext) -> Outcome {
    let (run, mut params) = first_retry(ctx).await?;
    params["inputResponses"] = "yes".into();
    let response = retry(ctx, run, params, true).await?;
    response.error()?;
    response.evidence()
}

/// Returns a trial that asks something, and the parameters of its second round.
pub(super) async fn first_retry(ctx: &CheckContext) -> Result<(&ToolRun, Value), NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    let mut retries = tool_runs
        .runs
        .iter()
        .filter_map(|run| Some((run, run.first_retry()?)));
    // Whoever asks for nothing but patience has no answers to get wrong.
    let found = retries.find(|(_, params)| params.get("inputResponses").is_some());
    found.ok_or_else(|| tool_runs.none("asks the client anything"))
}

/// Comes back once; `deliberately_invalid` if what is brought is wrong on purpose.
pub(super) async fn retry(
    ctx: &CheckContext,
    run: &ToolRun,
    mut params: Value,
    deliberately_invalid: bool,
) -> Result<ProbeResponse, NotPassed> {
    // The same parameters may be brought several times, each time by a request of its own.
    if let Some(own) = params.pointer_mut("/_meta/progressToken") {
        *own = next_progress_token();
    }
    let session = &ctx.tool_runs().await?.session;
    let response = call_tool(session, &run.call, params).await?;
    if let (true, Some(sent)) = (deliberately_invalid, response.sent) {
        ctx.transcript
            .update(sent, |entry| entry.deliberately_invalid = true);
    }
    Ok(response)
}

/// Returns all answers that ask for input.
fn runs_with_requests(ctx: &CheckContext) -> Result<Vec<TranscriptMessage>, NotPassed> {
    let runs_with_requests: Vec<_> = messages(&ctx.transcript, Direction::Received)
        .filter(|message| message.value["result"]["resultType"] == "input_required")
        .collect();
    if runs_with_requests.is_empty() {
        Err(NotPassed::not_tested(
            "nothing was answered with `input_required`",
        ))
    } else {
        Ok(runs_with_requests)
    }
}

/// A state that no server has given.
const GARBAGE: &str = "check-made-up-state";

pub(super) async fn tampered(ctx: &CheckContext) -> Outcome {
    let (run, params) = first_retry(ctx).await?;
    let Some(state) = params["requestState"].as_str().map(str::to_owned) else {
        return Err(NotPassed::not_applicable(
            "the server leaves no state with its client",
        ));
    };
    let refused = refused(ctx, run, &params).await?;
    let mut evidence: Vec<_> = refused.entries().collect();
    for changed in changes(&state) {
        let mut params = params.clone();
        params["requestState"] = changed.into();
        let response = retry(ctx, run, params, true).await?;
        if is_done(&response) {
            let observed = "a state of which one character was changed is accepted";
            return Err(response.violation(observed));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

pub(super) async fn of_another_request(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let (run, params) = first_retry(ctx).await?;
    if params["requestState"].is_null() {
        return Err(NotPassed::not_applicable(
            "the server leaves no state with its client",
        ));
    }
    let others = tool_runs
        .runs
        .iter()
        .filter(|other| other.call.name != run.call.name);
    let mut others = others.filter_map(|other| Some((other, other.first_retry()?)));
    let Some((other, mut theirs)) = others.next() else {
        return Err(tool_runs.none("asks the client anything beside the one that does"));
    };
    refused(ctx, other, &theirs).await?;
    theirs["requestState"] = params["requestState"].clone();
    let response = retry(ctx, other, theirs, true).await?;
    if is_done(&response) {
        Err(response.violation(format!(
            "the state of a call of `{}` is accepted for `{}`",
            run.call.name, other.call.name
        )))
    } else {
        response.evidence()
    }
}

/// Comes back with a state that is none, and returns how that is refused.
///
/// Where anything will do, the state decides nothing, and nothing needs to be protected.
async fn refused(
    ctx: &CheckContext,
    run: &ToolRun,
    params: &Value,
) -> Result<ProbeResponse, NotPassed> {
    let mut made_up = params.clone();
    made_up["requestState"] = GARBAGE.into();
    let response = retry(ctx, run, made_up, true).await?;
    if is_done(&response) {
        Err(NotPassed::not_tested(
            "the state decides nothing: any other does as well",
        ))
    } else {
        Ok(response)
    }
}

/// Says whether a call was done as if nothing were wrong.
fn is_done(response: &ProbeResponse) -> bool {
    let result = &response.value["result"];
    result.is_object()
        && result["resultType"] != "input_required"
        && result["isError"] != Value::Bool(true)
}

/// Returns the state with one character changed, at several places; the ends may be padding.
///
/// Never only from lower to upper case: where those are digits, they are the same ones.
fn changes(state: &str) -> Vec<String> {
    let characters: Vec<char> = state.chars().collect();
    let locations = [1, 2, 3].map(|quarter| characters.len() * quarter / 4);
    let changed = |at: usize| {
        let mut characters = characters.clone();
        let character = characters.get_mut(at)?;
        *character = match *character {
            'A' => 'B',
            'a' => 'b',
            '0' => '1',
            digit if digit.is_ascii_digit() => '0',
            _ => 'A',
        };
        Some(characters.into_iter().collect())
    };
    locations.into_iter().filter_map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_state_differs_whatever_case_counts_for() {
        for state in ["aaaaaaaa", "AAAAAAAA", "00000000", "d41d8cd9", "ZzZzZzZz"] {
            let changed = changes(state);
            assert_eq!(changed.len(), 3);
            for changed in changed {
                assert!(!changed.eq_ignore_ascii_case(state), "{state} {changed}");
            }
        }
    }
}
