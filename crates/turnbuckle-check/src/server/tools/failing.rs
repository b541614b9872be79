//! Calls of tools that go wrong.

use serde_json::{Value, json};
use turnbuckle_schema::Validator;

use super::NOBODY;
use crate::discovery::{Call, is_complete};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::Answer;
use crate::visit::Visit;

/// An internal error: what a tool does that nobody has caught.
const INTERNAL: i64 = -32603;

pub(super) async fn unknown(visit: &Visit) -> Outcome {
    visit.capability("/tools").await?;
    let params = json!({ "name": NOBODY, "arguments": {} });
    let answer = visit.session().await?.ask("tools/call", params).await?;
    match answer.value["result"]["isError"] == true {
        true => Err(answer.broken("a result with `isError` instead of an error")),
        false => {
            answer.error()?;
            answer.seen()
        }
    }
}

pub(super) async fn wrong_arguments(visit: &Visit) -> Outcome {
    let (call, answer) = misuse(visit).await?;
    match outcome(&answer) {
        Came::Success => Err(answer.broken(format!(
            "`{}` takes {} as if nothing were wrong",
            call.name, call.arguments
        ))),
        Came::Failure | Came::Error(_) => answer.seen(),
        Came::Other => Err(Unmet::not_tested("the call was answered with a question")),
    }
}

pub(super) async fn wrong_arguments_as_result(visit: &Visit) -> Outcome {
    let (call, answer) = misuse(visit).await?;
    match outcome(&answer) {
        Came::Failure => answer.seen(),
        Came::Error(code) => Err(answer.broken(format!(
            "`{}` answers {} with the error {code} instead of a result",
            call.name, call.arguments
        ))),
        Came::Success | Came::Other => Err(Unmet::not_tested("the wrong argument was not refused")),
    }
}

pub(super) async fn failure_as_result(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for trial in &visit.trials().await?.made {
        let Ok(answer) = trial.answer() else { continue };
        match outcome(answer) {
            Came::Error(code) if code == INTERNAL || !(-32_768..=-32_000).contains(&code) => {
                let what = format!("`{}` fails with {}", trial.call.name, answer.describe());
                return Err(answer.broken(what));
            }
            Came::Error(_) | Came::Other => {}
            Came::Success | Came::Failure => seen.extend(answer.entries()),
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "no call of a tool was answered with a result",
        )),
        false => Seen::at(seen),
    }
}

/// What came of a call.
enum Came {
    Success,
    Failure,
    Error(i64),
    Other,
}

fn outcome(answer: &Answer) -> Came {
    let result = &answer.value["result"];
    match answer.value["error"]["code"].as_i64() {
        Some(code) => Came::Error(code),
        None if !result.is_object() || !is_complete(result) => Came::Other,
        None if result["isError"] == true => Came::Failure,
        None => Came::Success,
    }
}

/// Calls a tool with an argument of the wrong type.
async fn misuse(visit: &Visit) -> Result<(Call, Answer), Unmet> {
    let calls = visit.callable().await?;
    // What writes is called with the arguments that the user has chosen, and with no others.
    let mut free = calls.iter().filter(|call| call.is_free);
    let misused = free.find_map(|call| Some((*call, wrong(call)?)));
    let (call, arguments) = misused.ok_or_else(|| {
        Unmet::not_tested("no tool that can be called has an argument with a type")
    })?;
    let call = Call {
        arguments,
        ..call.clone()
    };
    let answer = call
        .ask(visit.session().await?)
        .await
        .map_err(Unmet::aside)?;
    Ok((call, answer))
}

/// Returns the arguments with one of them of a type that nobody could mistake for the right one.
fn wrong(call: &Call) -> Option<Value> {
    let schema = call.tool["inputSchema"].as_object()?;
    let validator = Validator::lenient(schema).ok()?;
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
