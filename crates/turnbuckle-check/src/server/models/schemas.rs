//! What models make of schemas.

use serde_json::{Map, Value};

use super::{listed, named};
use crate::discovery::is_complete;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::visit::Visit;

/// How deep arguments may be nested.
const DEEPEST: usize = 5;
/// How many values a choice may have.
const WIDEST: usize = 100;
/// How deep a schema is looked at.
const LOOKED_AT: usize = 32;

pub(super) async fn descriptions(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
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
        return Seen::at(tools.entries());
    }
    let what = format!(
        "{} arguments without a description: {}",
        bare.len(),
        listed(bare)
    );
    Err(Unmet::broken(what, tools.entries()))
}

pub(super) async fn required(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    let silent = tools.iter().filter(|tool| {
        let root = &tool["inputSchema"];
        let optional = |schema: &Value| schema.get("default").is_some() || takes_null(schema);
        root.get("required").is_none()
            && properties(root).next().is_some()
            && !properties(root).any(|(_, schema)| optional(schema))
    });
    let names: Vec<_> = silent.filter_map(|tool| tool["name"].as_str()).collect();
    match names.is_empty() {
        true => Seen::at(tools.entries()),
        false => {
            let what = format!(
                "nothing says which arguments of {} are required",
                named(names)
            );
            Err(Unmet::broken(what, tools.entries()))
        }
    }
}

pub(super) async fn simple(visit: &Visit) -> Outcome {
    let tools = visit.tools().await?;
    for tool in tools {
        let name = named(tool["name"].as_str());
        let mut size = Size::default();
        size.measure(&tool["inputSchema"], 0, LOOKED_AT);
        let what = match size {
            Size { deepest, .. } if deepest > DEEPEST => {
                format!("the arguments of {name} are {deepest} levels deep")
            }
            Size { widest, .. } if widest > WIDEST => {
                format!("an argument of {name} is a choice of {widest} values")
            }
            _ => continue,
        };
        return Err(Unmet::broken(what, tools.entries()));
    }
    Seen::at(tools.entries())
}

pub(super) async fn output(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for trial in &visit.trials().await?.made {
        let Ok(answer) = trial.answer() else { continue };
        let result = &answer.value["result"];
        if !is_complete(result) || result.get("structuredContent").is_none() {
            continue;
        }
        if !trial.call.tool["outputSchema"].is_object() {
            let name = named([&*trial.call.name]);
            return Err(answer.broken(format!(
                "{name} returns structured content, but has no output schema"
            )));
        }
        seen.extend(answer.entries());
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable("no call returned structured content")),
        false => Seen::at(seen),
    }
}

/// How large a schema is.
#[derive(Default)]
struct Size {
    deepest: usize,
    widest: usize,
}

impl Size {
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
