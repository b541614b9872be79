//! Calls of tools that go wrong.

use serde_json::{Value, json};
use turnbuckle_schema::SchemaValidator;

use super::NOBODY;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::{SafeCall, is_complete},
    session::ProbeResponse,
};

/// An internal error: what a tool does that nobody has caught.
const INTERNAL: i64 = -32603;

pub(super) async fn unknown(ctx: &CheckContext) -> Outcome {
    ctx.capability("/tools").await?;
    let params = json!({ "name": NOBODY, "arguments": {} });
    let response = ctx.session().await?.request("tools/call", params).await?;
    if response.value["result"]["isError"] == true {
        Err(response.violation("a result with `isError` instead of an error"))
    } else {
        response.error()?;
        response.evidence()
    }
}

pub(super) async fn wrong_arguments(ctx: &CheckContext) -> Outcome {
    let (call, response) = misuse(ctx).await?;
    match outcome(&response) {
        ToolCallObservation::Success => Err(response.violation(format!(
            "`{}` takes {} as if nothing were wrong",
            call.name, call.arguments
        ))),
        ToolCallObservation::Failure | ToolCallObservation::Error(_) => response.evidence(),
        ToolCallObservation::Other => Err(NotPassed::not_tested(
            "the call was answered with a question",
        )),
    }
}

pub(super) async fn wrong_arguments_as_result(ctx: &CheckContext) -> Outcome {
    let (call, response) = misuse(ctx).await?;
    match outcome(&response) {
        ToolCallObservation::Failure => response.evidence(),
        ToolCallObservation::Error(code) => Err(response.violation(format!(
            "`{}` answers {} with the error {code} instead of a result",
            call.name, call.arguments
        ))),
        ToolCallObservation::Success | ToolCallObservation::Other => {
            Err(NotPassed::not_tested("the wrong argument was not refused"))
        }
    }
}

pub(super) async fn failure_as_result(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in &ctx.tool_runs().await?.runs {
        let Ok(response) = run.response() else {
            continue;
        };
        match outcome(response) {
            ToolCallObservation::Error(code)
                if code == INTERNAL || !(-32_768..=-32_000).contains(&code) =>
            {
                let observed = format!("`{}` fails with {}", run.call.name, response.describe());
                return Err(response.violation(observed));
            }
            ToolCallObservation::Error(_) | ToolCallObservation::Other => {}
            ToolCallObservation::Success | ToolCallObservation::Failure => {
                evidence.extend(response.entries())
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "no call of a tool was answered with a result",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

/// What came of a call.
enum ToolCallObservation {
    Success,
    Failure,
    Error(i64),
    Other,
}

fn outcome(response: &ProbeResponse) -> ToolCallObservation {
    let result = &response.value["result"];
    match response.value["error"]["code"].as_i64() {
        Some(code) => ToolCallObservation::Error(code),
        None if !result.is_object() || !is_complete(result) => ToolCallObservation::Other,
        None if result["isError"] == true => ToolCallObservation::Failure,
        None => ToolCallObservation::Success,
    }
}

/// Calls a tool with an argument of the wrong type.
async fn misuse(ctx: &CheckContext) -> Result<(SafeCall, ProbeResponse), NotPassed> {
    let calls = ctx.safe_calls().await?;
    // What writes is called with the arguments that the user has chosen, and with no others.
    let mut free = calls.iter().filter(|call| call.allows_other_arguments);
    let misused = free.find_map(|call| Some((*call, wrong(call)?)));
    let (call, arguments) = misused.ok_or_else(|| {
        NotPassed::not_tested("no tool that can be called has an argument with a type")
    })?;
    let call = SafeCall {
        arguments,
        ..call.clone()
    };
    let response = call
        .send(ctx.session().await?)
        .await
        .map_err(NotPassed::as_not_tested)?;
    Ok((call, response))
}

/// Returns the arguments with one of them of a type that nobody could mistake for the right one.
fn wrong(call: &SafeCall) -> Option<Value> {
    let schema = call.tool["inputSchema"].as_object()?;
    let validator = SchemaValidator::lenient(schema).ok()?;
    let properties = schema.get("properties")?.as_object()?;
    // What is repeated in a header is refused because of the header.
    let mut plain = properties
        .iter()
        .filter(|(_, property)| property.get("x-mcp-header").is_none());
    plain.find_map(|(name, property)| {
        let wrong = match property["type"].as_str()? {
            "object" | "array" => json!(true),
            _ => json!({ "of": ["the wrong type"] }),
        };
        let mut arguments = call.arguments.clone();
        arguments[name] = wrong;
        validator
            .check("arguments", &arguments)
            .is_err()
            .then_some(arguments)
    })
}
