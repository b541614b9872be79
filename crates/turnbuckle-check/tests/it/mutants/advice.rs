//! Mutants that violate advice.

use serde_json::{Value, json};

use super::tools::{each_tool, object_in, rename};
use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("models.instructions", "no instructions").map_sent(|outgoing| {
            if let Some(result) = object_in(&mut outgoing.message, "/result") {
                result.remove("instructions");
            }
        }),
        on_tools(
            "models.tool-descriptions",
            "a tool without a description",
            |tool| {
                without(tool, "description");
            },
        ),
        on_tools(
            "models.distinct-descriptions",
            "two identical descriptions",
            |tool| {
                tool["description"] = "Does something".into();
            },
        ),
        on_tools(
            "models.description-length",
            "a very long description",
            |tool| {
                tool["description"] = format!("{} and so on", tool["name"]).repeat(200).into();
            },
        ),
        on_tools(
            "models.consistent-names",
            "names in different styles",
            |tool| {
                rename(tool, "forget", "forgetAll");
                rename(tool, "panel", "show-panel");
            },
        ),
        on_tools("models.titles", "tools without titles", |tool| {
            without(tool, "title");
        }),
        on_tools("models.annotations", "a tool without annotations", |tool| {
            if tool["name"] == "forget" {
                without(tool, "annotations");
            }
        }),
        on_tools(
            "models.argument-descriptions",
            "arguments without descriptions",
            |tool| {
                if tool["name"] == "add" {
                    without(&mut tool["inputSchema"]["properties"]["a"], "description");
                }
            },
        ),
        on_tools("models.required", "no required arguments", |tool| {
            if tool["name"] == "add" {
                without(&mut tool["inputSchema"], "required");
            }
        }),
        on_tools("models.simple-schemas", "deeply nested arguments", |tool| {
            if tool["name"] == "add" {
                let leaf = json!({ "type": "string", "description": "At last." });
                tool["inputSchema"]["properties"]["deep"] = (0..6).fold(leaf, |inner, _| {
                    json!({ "type": "object", "description": "More.", "properties": { "deep": inner } })
                });
            }
        }),
        on_tools(
            "models.simple-schemas",
            "an enumeration of a thousand values",
            |tool| {
                if tool["name"] == "add" {
                    let values: Vec<_> = (0..1_000).map(|value| value.to_string()).collect();
                    tool["inputSchema"]["properties"]["wide"] =
                        json!({ "type": "string", "description": "One of many.", "enum": values });
                }
            },
        ),
        on_tools(
            "models.output-schema",
            "structured content without an output schema",
            |tool| {
                without(tool, "outputSchema");
            },
        ),
        on_tools("models.list-cost", "a very large tool list", |tool| {
            tool["inputSchema"]["$comment"] = "word ".repeat(1_500).into();
        }),
    ]
}

fn on_tools(violates: &'static str, name: &'static str, change: fn(&mut Value)) -> Mutant {
    Mutant::new(violates, name)
        .map_response_to("tools/list", move |message| each_tool(message, change))
}

fn without(value: &mut Value, field: &str) {
    if let Some(object) = value.as_object_mut() {
        object.remove(field);
    }
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
