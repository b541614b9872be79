//! Advice about schemas and the size of the tool list.

use serde_json::{Map, Value};

use super::{list_items, list_names};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::is_complete,
};

/// The maximum nesting depth of arguments.
const MAX_NESTING: usize = 5;
/// The maximum number of values of an enumeration.
const MAX_ENUM_VALUES: usize = 100;
/// The maximum depth to which a schema is measured.
const MAX_MEASURED_DEPTH: usize = 32;

pub(super) async fn descriptions(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let mut undescribed = Vec::new();
    for tool in tools {
        let root = &tool["inputSchema"];
        for (argument, schema) in properties(root) {
            if !is_described(root, schema) {
                undescribed.push(format!(
                    "`{argument}` of {}",
                    list_names(tool["name"].as_str())
                ));
            }
        }
    }
    if undescribed.is_empty() {
        return Evidence::from_entries(tools.entries());
    }
    let observed = format!(
        "{} arguments without a description: {}",
        undescribed.len(),
        list_items(undescribed)
    );
    Err(NotPassed::violation(observed, tools.entries()))
}

pub(super) async fn required(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let without_required = tools.iter().filter(|tool| {
        let root = &tool["inputSchema"];
        let is_optional = |schema: &Value| schema.get("default").is_some() || allows_null(schema);
        root.get("required").is_none()
            && properties(root).next().is_some()
            && !properties(root).any(|(_, schema)| is_optional(schema))
    });
    let names: Vec<_> = without_required
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    if names.is_empty() {
        Evidence::from_entries(tools.entries())
    } else {
        let observed = format!("the input schemas of {} lack `required`", list_names(names));
        Err(NotPassed::violation(observed, tools.entries()))
    }
}

pub(super) async fn simple(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    for tool in tools {
        let name = list_names(tool["name"].as_str());
        let mut size = SchemaSize::default();
        size.measure(&tool["inputSchema"], 0, MAX_MEASURED_DEPTH);
        let observed = match size {
            SchemaSize { deepest, .. } if deepest > MAX_NESTING => {
                format!("the arguments of {name} are {deepest} levels deep")
            }
            SchemaSize { widest, .. } if widest > MAX_ENUM_VALUES => {
                format!("an argument of {name} has {widest} enumeration values")
            }
            _ => continue,
        };
        return Err(NotPassed::violation(observed, tools.entries()));
    }
    Evidence::from_entries(tools.entries())
}

pub(super) async fn output(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for run in &ctx.tool_runs().await?.runs {
        let Ok(response) = run.response() else {
            continue;
        };
        let result = &response.value["result"];
        if !is_complete(result) || result.get("structuredContent").is_none() {
            continue;
        }
        if !run.call.tool["outputSchema"].is_object() {
            let name = list_names([&*run.call.name]);
            return Err(response.violation(format!(
                "{name} returns structured content, but lacks an output schema"
            )));
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

/// The size of a schema.
#[derive(Default)]
struct SchemaSize {
    deepest: usize,
    widest: usize,
}

impl SchemaSize {
    /// Measures a schema; only nested properties count as depth.
    fn measure(&mut self, schema: &Value, depth: usize, left: usize) {
        let (Value::Object(schema), Some(left)) = (schema, left.checked_sub(1)) else {
            return;
        };
        self.deepest = self.deepest.max(depth);
        let choices = schema.get("enum").and_then(Value::as_array);
        self.widest = self.widest.max(choices.map_or(0, Vec::len));
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    properties
                        .values()
                        .for_each(|inner| self.measure(inner, depth + 1, left));
                }
                ("items" | "additionalProperties", inner) => self.measure(inner, depth, left),
                ("anyOf" | "oneOf" | "allOf", Value::Array(choices)) => {
                    choices
                        .iter()
                        .for_each(|inner| self.measure(inner, depth, left));
                }
                _ => {}
            }
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
}

/// Returns whether a schema or the target of its reference has a description.
fn is_described(root: &Value, schema: &Value) -> bool {
    let has_text = |schema: &Value| {
        schema["description"]
            .as_str()
            .is_some_and(|text| !text.trim().is_empty())
    };
    let target = schema["$ref"]
        .as_str()
        .and_then(|at| root.pointer(at.strip_prefix('#')?));
    // A constant needs no description.
    has_text(schema) || target.is_some_and(has_text) || schema.get("const").is_some()
}

fn allows_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let in_type = schema["type"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(is_null));
    let choices = schema["anyOf"]
        .as_array()
        .or_else(|| schema["oneOf"].as_array());
    in_type || choices.is_some_and(|choices| choices.iter().any(|choice| is_null(&choice["type"])))
}

/// The maximum size of the list in tokens, by a rough estimate.
const MAX_LIST_TOKENS: usize = 10_000;
/// The approximate number of bytes of JSON per token.
const BYTES_PER_TOKEN: usize = 4;

pub(super) async fn list_cost(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let costs = tools.iter().map(|tool| {
        // Only these members are shown to a model.
        let lengths =
            ["name", "description", "inputSchema"].map(|field| tool[field].to_string().len());
        (
            lengths.iter().sum::<usize>() / BYTES_PER_TOKEN,
            tool["name"].as_str().unwrap_or_default(),
        )
    });
    let mut costs: Vec<_> = costs.collect();
    let total: usize = costs.iter().map(|(cost, _)| cost).sum();
    if total <= MAX_LIST_TOKENS {
        return Evidence::from_entries(tools.entries());
    }
    costs.sort_unstable_by(|one, other| other.cmp(one));
    let largest = costs.iter().take(3);
    let part: usize = largest.clone().map(|(cost, _)| cost).sum();
    let observed = format!(
        "{} tools take about {total} tokens, {part} of them for {}",
        tools.len(),
        list_names(largest.map(|(_, name)| *name))
    );
    Err(NotPassed::violation(observed, tools.entries()))
}
