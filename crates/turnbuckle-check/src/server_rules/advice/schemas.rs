//! What models make of schemas.

use serde_json::{Map, Value};

use super::{listed, named};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::is_complete,
};

/// How deep arguments may be nested.
const MAX_NESTING: usize = 5;
/// How many values a choice may have.
const MAX_ENUM_VALUES: usize = 100;
/// How deep a schema is looked at.
const LOOKED_AT: usize = 32;

pub(super) async fn descriptions(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let mut bare = Vec::new();
    for tool in tools {
        let root = &tool["inputSchema"];
        for (argument, schema) in properties(root) {
            if !is_described(root, schema) {
                bare.push(format!("`{argument}` of {}", named(tool["name"].as_str())));
            }
        }
    }
    if bare.is_empty() {
        return Evidence::from_entries(tools.entries());
    }
    let observed = format!(
        "{} arguments without a description: {}",
        bare.len(),
        listed(bare)
    );
    Err(NotPassed::violation(observed, tools.entries()))
}

pub(super) async fn required(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let silent = tools.iter().filter(|tool| {
        let root = &tool["inputSchema"];
        let optional = |schema: &Value| schema.get("default").is_some() || takes_null(schema);
        root.get("required").is_none()
            && properties(root).next().is_some()
            && !properties(root).any(|(_, schema)| optional(schema))
    });
    let names: Vec<_> = silent.filter_map(|tool| tool["name"].as_str()).collect();
    if names.is_empty() {
        Evidence::from_entries(tools.entries())
    } else {
        let observed = format!(
            "nothing says which arguments of {} are required",
            named(names)
        );
        Err(NotPassed::violation(observed, tools.entries()))
    }
}

pub(super) async fn simple(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    for tool in tools {
        let name = named(tool["name"].as_str());
        let mut size = SchemaSize::default();
        size.measure(&tool["inputSchema"], 0, LOOKED_AT);
        let observed = match size {
            SchemaSize { deepest, .. } if deepest > MAX_NESTING => {
                format!("the arguments of {name} are {deepest} levels deep")
            }
            SchemaSize { widest, .. } if widest > MAX_ENUM_VALUES => {
                format!("an argument of {name} is a choice of {widest} values")
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
            let name = named([&*run.call.name]);
            return Err(response.violation(format!(
                "{name} returns structured content, but has no output schema"
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

/// How large a schema is.
#[derive(Default)]
struct SchemaSize {
    deepest: usize,
    widest: usize,
}

impl SchemaSize {
    /// Measures a schema; only objects in objects or lists count as deep.
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

/// Says whether a schema, or what it refers to, has a description.
fn is_described(root: &Value, schema: &Value) -> bool {
    let text = |schema: &Value| {
        schema["description"]
            .as_str()
            .is_some_and(|text| !text.trim().is_empty())
    };
    let target = schema["$ref"]
        .as_str()
        .and_then(|at| root.pointer(at.strip_prefix('#')?));
    // What can have one value only needs no words.
    text(schema) || target.is_some_and(text) || schema.get("const").is_some()
}

fn takes_null(schema: &Value) -> bool {
    let null = |kind: &Value| kind == "null";
    let in_type = schema["type"]
        .as_array()
        .is_some_and(|kinds| kinds.iter().any(null));
    let choices = schema["anyOf"]
        .as_array()
        .or_else(|| schema["oneOf"].as_array());
    in_type || choices.is_some_and(|choices| choices.iter().any(|choice| null(&choice["type"])))
}

/// How many tokens the list may take, by a rough estimate.
const MAX_LIST_TOKENS: usize = 10_000;
/// How many bytes of JSON are about one token.
const BYTES_PER_TOKEN: usize = 4;

pub(super) async fn list_cost(ctx: &CheckContext) -> Outcome {
    let tools = ctx.tools().await?;
    let costs = tools.iter().map(|tool| {
        // A model gets to see these, and nothing else.
        let lengths =
            ["name", "description", "inputSchema"].map(|field| tool[field].to_string().len());
        (
            lengths.iter().sum::<usize>() / BYTES_PER_TOKEN,
            tool["name"].as_str().unwrap_or_default(),
        )
    });
    let mut costs: Vec<_> = costs.collect();
    let all: usize = costs.iter().map(|(cost, _)| cost).sum();
    if all <= MAX_LIST_TOKENS {
        return Evidence::from_entries(tools.entries());
    }
    costs.sort_unstable_by(|one, other| other.cmp(one));
    let costliest = costs.iter().take(3);
    let part: usize = costliest.clone().map(|(cost, _)| cost).sum();
    let observed = format!(
        "{} tools take about {all} tokens, {part} of them {}",
        tools.len(),
        named(costliest.map(|(_, name)| *name))
    );
    Err(NotPassed::violation(observed, tools.entries()))
}
