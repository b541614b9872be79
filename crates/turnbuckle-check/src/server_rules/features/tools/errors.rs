//! Errors of tool calls.

use serde_json::{Value, json};
use turnbuckle_schema::SchemaValidator;

use super::UNKNOWN_TOOL;
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::{SafeCall, is_complete},
    session::ProbeResponse,
};

/// The code for internal errors, such as an uncaught exception of a tool.
const INTERNAL_ERROR: i64 = -32603;

pub(super) async fn unknown(ctx: &CheckContext) -> Outcome {
    ctx.capability("/tools").await?;
    let params = json!({ "name": UNKNOWN_TOOL, "arguments": {} });
    let response = ctx.session().await?.request("tools/call", params).await?;
    if response.value["result"]["isError"] == true {
        Err(response.violation("a result with `isError` instead of an error"))
    } else {
        response.error()?;
        response.evidence()
    }
}

pub(super) async fn wrong_arguments(ctx: &CheckContext) -> Outcome {
    let (call, response) = call_with_wrong_argument(ctx).await?;
    match outcome(&response) {
        ToolCallObservation::Success => {
            Err(response.violation(format!("`{}` accepts {}", call.name, call.arguments)))
        }
        ToolCallObservation::Failure | ToolCallObservation::Error(_) => response.evidence(),
        ToolCallObservation::Other => {
            Err(NotPassed::not_tested("the call returned `input_required`"))
        }
    }
}

pub(super) async fn wrong_arguments_as_result(ctx: &CheckContext) -> Outcome {
    let (call, response) = call_with_wrong_argument(ctx).await?;
    match outcome(&response) {
        ToolCallObservation::Failure => response.evidence(),
        ToolCallObservation::Error(code) => Err(response.violation(format!(
            "`{}` returns error {code} instead of a result for {}",
            call.name, call.arguments
        ))),
        ToolCallObservation::Success | ToolCallObservation::Other => Err(NotPassed::not_tested(
            "the server accepted the wrong argument",
        )),
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
                if code == INTERNAL_ERROR || !(-32_768..=-32_000).contains(&code) =>
            {
                let observed = format!("`{}` fails with {}", run.call.name, response.describe());
                return Err(response.violation(observed));
            }
            ToolCallObservation::Error(_) | ToolCallObservation::Other => {}
            ToolCallObservation::Success | ToolCallObservation::Failure => {
                evidence.extend(response.entries());
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested("no tool call returned a result"))
    } else {
        Evidence::from_entries(evidence)
    }
}

/// The kind of response to a tool call.
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
async fn call_with_wrong_argument(
    ctx: &CheckContext,
) -> Result<(SafeCall, ProbeResponse), NotPassed> {
    let calls = ctx.safe_calls().await?;
    // A tool that writes is called only with the arguments that the user selected.
    let mut variable = calls.iter().filter(|call| call.allows_other_arguments);
    let found = variable.find_map(|call| Some((*call, wrong_arguments_for(call)?)));
    let (call, arguments) =
        found.ok_or_else(|| NotPassed::not_tested("no safe tool has an argument with a type"))?;
    let call = SafeCall {
        arguments,
        ..call.clone()
    };
    let response = call
        .send(ctx.session().await?)
        .await
        .map_err(NotPassed::into_not_tested)?;
    Ok((call, response))
}

/// Returns the arguments with one value of an unmistakably wrong type.
fn wrong_arguments_for(call: &SafeCall) -> Option<Value> {
    let schema = call.tool["inputSchema"].as_object()?;
    let validator = SchemaValidator::lenient(schema).ok()?;
    let properties = schema.get("properties")?.as_object()?;
    // An argument with a param header is rejected because of the header.
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
