//! Round trips: `input_required` results and retried requests.

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
    let input_required_results = input_required_results(ctx)?;
    for message in &input_required_results {
        let request = message
            .entry
            .response_to
            .map(|sent| ctx.transcript.entry(sent));
        let request = request.and_then(|entry| entry.json()).unwrap_or_default();
        let method = request["method"].as_str();
        let allowed = ["tools/call", "prompts/get", "resources/read"];
        if let Some(method) = method.filter(|method| !allowed.contains(method)) {
            let observed = format!("`{method}` returned `input_required`");
            return Err(NotPassed::violation(
                observed,
                message.entry.response_to.into_iter().chain([message.at]),
            ));
        }
    }
    Evidence::from_entries(
        input_required_results
            .iter()
            .map(|message| message.at)
            .take(3),
    )
}

pub(super) fn has_input_requests_or_state(ctx: &CheckContext) -> Outcome {
    let input_required_results = input_required_results(ctx)?;
    for message in &input_required_results {
        let result = &message.value["result"];
        let requests = result["inputRequests"].as_object();
        if result.get("inputRequests").is_none() && result.get("requestState").is_none() {
            return Err(NotPassed::violation(
                "neither `inputRequests` nor `requestState`",
                [message.at],
            ));
        }
        for request in requests.into_iter().flat_map(|requests| requests.values()) {
            let Some(method) = request["method"].as_str() else {
                continue;
            };
            if capability_for(method).is_none() {
                let observed = format!("an input request with the method `{method}`");
                let violation = NotPassed::violation(observed, [message.at]);
                return Err(violation.for_requirement("mrtr.result.values"));
            }
        }
    }
    Evidence::from_entries(
        input_required_results
            .iter()
            .map(|message| message.at)
            .take(3),
    )
}

pub(super) async fn requests_again(ctx: &CheckContext) -> Outcome {
    let (run, mut params) = first_retry(ctx).await?;
    params["inputResponses"] = json!({});
    let response = retry(ctx, run, params, false).await?;
    response.result()?;
    if let Some(params) = run.retry(&response) {
        end_call(ctx, run, params).await;
    }
    response.evidence()
}

pub(super) async fn ignores_surplus(ctx: &CheckContext) -> Outcome {
    let (run, mut params) = first_retry(ctx).await?;
    params["inputResponses"]["check_not_requested"] = json!({ "action": "decline" });
    let response = retry(ctx, run, params, false).await?;
    response.result()?;
    response.evidence()
}

pub(super) async fn malformed_responses(ctx: &CheckContext) -> Outcome {
    let (run, params) = first_retry(ctx).await?;
    let mut malformed = params.clone();
    malformed["inputResponses"] = "yes".into();
    let response = retry(ctx, run, malformed, true).await?;
    end_call(ctx, run, params).await;
    response.error()?;
    response.evidence()
}

/// Calls a tool that sends input requests; returns its run, and the parameters of the first retry of this call.
///
/// The run itself has ended, and a server may reject its state.
async fn first_retry(ctx: &CheckContext) -> Result<(&ToolRun, Value), NotPassed> {
    let tool_runs = ctx.tool_runs().await?;
    // A result with only a `requestState` has no effect on `inputResponses`.
    let requests_input = |run: &&ToolRun| {
        let retry = run.first_retry();
        retry.is_some_and(|params| params.get("inputResponses").is_some())
    };
    let run = tool_runs.runs.iter().find(requests_input);
    let run = run.ok_or_else(|| tool_runs.none("sends input requests"))?;
    Ok((run, call_again(ctx, run).await?))
}

/// Makes the call of a run again, up to its first response; returns the parameters of the retry.
async fn call_again(ctx: &CheckContext, run: &ToolRun) -> Result<Value, NotPassed> {
    let response = retry(ctx, run, run.params.clone(), false).await?;
    let params = run.retry(&response);
    params.ok_or_else(|| NotPassed::not_tested("the tool requested input only once"))
}

/// Responds to the input requests of a call, which a server may keep open.
async fn end_call(ctx: &CheckContext, run: &ToolRun, params: Value) {
    // Best effort: the call is not what is checked.
    let _ = retry(ctx, run, params, false).await;
}

/// Retries the call once; `deliberately_invalid` marks parameters that are wrong on purpose.
pub(super) async fn retry(
    ctx: &CheckContext,
    run: &ToolRun,
    mut params: Value,
    deliberately_invalid: bool,
) -> Result<ProbeResponse, NotPassed> {
    // The same parameters may be sent in several requests, each with its token.
    if let Some(token) = params.pointer_mut("/_meta/progressToken") {
        *token = next_progress_token();
    }
    let session = &ctx.tool_runs().await?.session;
    let response = call_tool(session, &run.call, params).await?;
    if let (true, Some(sent)) = (deliberately_invalid, response.sent) {
        ctx.transcript
            .update(sent, |entry| entry.deliberately_invalid = true);
    }
    Ok(response)
}

/// Returns all `input_required` results.
fn input_required_results(ctx: &CheckContext) -> Result<Vec<TranscriptMessage>, NotPassed> {
    let input_required_results: Vec<_> = messages(&ctx.transcript, Direction::Received)
        .filter(|message| message.value["result"]["resultType"] == "input_required")
        .collect();
    if input_required_results.is_empty() {
        Err(NotPassed::not_tested(
            "no request returned `input_required`",
        ))
    } else {
        Ok(input_required_results)
    }
}

/// A state that no server issued.
const INVENTED_STATE: &str = "check-invented-state";

pub(super) async fn tampered_state(ctx: &CheckContext) -> Outcome {
    let (run, params) = first_retry(ctx).await?;
    let Some(state) = params["requestState"].as_str().map(str::to_owned) else {
        return Err(NotPassed::not_applicable(
            "the server sends no `requestState`",
        ));
    };
    let rejection = reject_invented_state(ctx, run, &params).await?;
    let mut evidence: Vec<_> = rejection.entries().collect();
    for changed in with_changed_character(&state) {
        let mut params = params.clone();
        params["requestState"] = changed.into();
        let response = retry(ctx, run, params, true).await?;
        if is_success(&response) {
            let observed = "a state with one changed character is accepted";
            return Err(response.violation(observed));
        }
        evidence.extend(response.entries());
    }
    end_call(ctx, run, params).await;
    Evidence::from_entries(evidence)
}

pub(super) async fn state_of_another_request(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let (run, params) = first_retry(ctx).await?;
    if params["requestState"].is_null() {
        return Err(NotPassed::not_applicable(
            "the server sends no `requestState`",
        ));
    }
    let mut others = tool_runs
        .runs
        .iter()
        .filter(|other| other.call.name != run.call.name);
    let Some(other) = others.find(|other| other.first_retry().is_some()) else {
        return Err(tool_runs.none("sends input requests other than the first one"));
    };
    let other_params = call_again(ctx, other).await?;
    reject_invented_state(ctx, other, &other_params).await?;
    let mut mixed = other_params.clone();
    mixed["requestState"] = params["requestState"].clone();
    let response = retry(ctx, other, mixed, true).await?;
    end_call(ctx, run, params).await;
    end_call(ctx, other, other_params).await;
    if is_success(&response) {
        Err(response.violation(format!(
            "the state of a call of `{}` is accepted for `{}`",
            run.call.name, other.call.name
        )))
    } else {
        response.evidence()
    }
}

/// Retries with an invented state, and returns the rejection.
///
/// If the server accepts any state, the state has no effect and needs no protection.
async fn reject_invented_state(
    ctx: &CheckContext,
    run: &ToolRun,
    params: &Value,
) -> Result<ProbeResponse, NotPassed> {
    let mut invented = params.clone();
    invented["requestState"] = INVENTED_STATE.into();
    let response = retry(ctx, run, invented, true).await?;
    if is_success(&response) {
        Err(NotPassed::not_tested("the server accepts any state"))
    } else {
        Ok(response)
    }
}

/// Returns whether a call succeeded.
fn is_success(response: &ProbeResponse) -> bool {
    let result = &response.value["result"];
    result.is_object()
        && result["resultType"] != "input_required"
        && result["isError"] != Value::Bool(true)
}

/// Returns copies of the state with one changed character each, away from the ends, which may be padding.
///
/// Does not change only the case: hexadecimal digits are the same in both cases.
fn with_changed_character(state: &str) -> Vec<String> {
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
    fn changed_state_differs_even_without_regard_to_case() {
        for state in ["aaaaaaaa", "AAAAAAAA", "00000000", "d41d8cd9", "ZzZzZzZz"] {
            let changed = with_changed_character(state);
            assert_eq!(changed.len(), 3);
            for changed in changed {
                assert!(!changed.eq_ignore_ascii_case(state), "{state} {changed}");
            }
        }
    }
}
