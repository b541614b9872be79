//! Results of tool calls.

use serde_json::{Map, Value};
use turnbuckle_schema::SchemaValidator;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::{SafeCall, is_complete, tool_runs::ToolRun},
    session::ProbeResponse,
};

pub(super) async fn output_fits(ctx: &CheckContext) -> Outcome {
    let runs = &ctx.tool_runs().await?.runs;
    if !ctx
        .tools()
        .await?
        .iter()
        .any(|tool| tool["outputSchema"].is_object())
    {
        return Err(NotPassed::not_applicable("no tool has an output schema"));
    }
    let mut evidence = Vec::new();
    for (call, response, result) in successes(runs) {
        let Some(validator) = output_validator(&call.tool) else {
            continue;
        };
        let Some(content) = result.get("structuredContent") else {
            let observed = format!(
                "`{}` has an output schema, but returns no structured content",
                call.name
            );
            return Err(response.violation(observed));
        };
        if let Err(mismatch) = validator.check("structuredContent", content) {
            return Err(response.violation(format!("`{}`: {mismatch}", call.name)));
        }
        evidence.extend(response.entries());
    }
    if evidence.is_empty() {
        Err(NotPassed::not_tested(
            "no call of a tool with an output schema succeeded",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

pub(super) async fn output_as_text(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (call, response, result) in successes(&ctx.tool_runs().await?.runs) {
        let Some(content) = result.get("structuredContent") else {
            continue;
        };
        if !is_in_text(content, &texts(result)) {
            let observed = format!(
                "`{}` returns structured content, but no text block contains it",
                call.name
            );
            return Err(response.violation(observed));
        }
        evidence.extend(response.entries());
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "no call returned structured content",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

pub(super) async fn embedded(ctx: &CheckContext) -> Outcome {
    let embeds = |result: &Value| {
        let blocks = result["content"].as_array().into_iter().flatten();
        blocks.into_iter().any(|block| block["type"] == "resource")
    };
    let runs = &ctx.tool_runs().await?.runs;
    let found = successes(runs).find(|(_, _, result)| embeds(result));
    let Some((call, response, _)) = found else {
        return Err(NotPassed::not_applicable("no call returned a resource"));
    };
    match ctx.session().await?.capabilities().get("resources") {
        Some(_) => response.evidence(),
        None => Err(response.violation(format!(
            "`{}` returns a resource, but `resources` is not declared",
            call.name
        ))),
    }
}

/// Returns the calls with a successful tool result.
fn successes(runs: &[ToolRun]) -> impl Iterator<Item = (&SafeCall, &ProbeResponse, &Value)> {
    runs.iter().filter_map(|run| {
        let response = run.response().ok()?;
        let result = response.value.get("result")?;
        (is_complete(result) && result["isError"] != true).then_some((&run.call, response, result))
    })
}

fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// Returns whether a text contains the structured content.
///
/// SDKs often wrap values other than objects as `result`, and write the value itself as text.
fn is_in_text(content: &Value, texts: &[&str]) -> bool {
    let contains = |value: &Value| {
        texts.iter().any(|text| {
            value.as_str() == Some(text)
                || serde_json::from_str::<Value>(text).is_ok_and(|parsed| same(&parsed, value))
        })
    };
    let wrapped = content.as_object().filter(|object| object.len() == 1);
    let wrapped = wrapped.and_then(|object| object.get("result"));
    contains(content)
        || wrapped.is_some_and(|inner| contains(inner) || (inner.is_array() && !texts.is_empty()))
}

/// Compares as JSON does: `1` and `1.0` are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let in_other = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|found| same(value, found))
            };
            one.len() == other.len() && one.iter().all(in_other)
        }
        _ => one == other,
    }
}

/// Returns the validator of a tool's output schema, if it has a valid one.
fn output_validator(tool: &Value) -> Option<SchemaValidator> {
    let mut schema = tool["outputSchema"].as_object()?.clone();
    without_formats(&mut schema);
    SchemaValidator::lenient(&schema).ok()
}

/// Removes `format`, which is only an annotation by default.
fn without_formats(schema: &mut Map<String, Value>) {
    schema.retain(|key, value| key != "format" || !value.is_string());
    for value in schema.values_mut() {
        match value {
            Value::Object(inner) => without_formats(inner),
            Value::Array(items) => {
                let inner = items.iter_mut().filter_map(Value::as_object_mut);
                inner.for_each(without_formats);
            }
            _ => {}
        }
    }
}
