//! Advice for servers that language models use. No advice is a requirement.

mod naming;
mod schemas;

use crate::rule::{Area::Models, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("models.instructions", Models, &[])
        .requirement("The server has instructions that tell a model what the server is for.")
        .hint("Describe in `instructions` what the server is for and how its tools work together.")
        .active(|ctx| Box::pin(naming::instructions(ctx))),
    Rule::server("models.tool-descriptions", Models, &[])
        .requirement("Every tool has a description.")
        .hint("Describe what the tool does, when to use it, and what it returns.")
        .active(|ctx| Box::pin(naming::descriptions(ctx))),
    Rule::server("models.distinct-descriptions", Models, &[])
        .requirement("No two tools have the same description.")
        .hint("State in each description how the tool differs from the others.")
        .active(|ctx| Box::pin(naming::distinct(ctx))),
    Rule::server("models.description-length", Models, &[])
        .requirement("Descriptions of tools are at most 2,000 characters long.")
        .hint("Keep what a model needs to select the tool, and move the rest to a resource or a prompt.")
        .active(|ctx| Box::pin(naming::length(ctx))),
    Rule::server("models.consistent-names", Models, &[])
        .requirement("All tool names use one naming style.")
        .hint("Use one of `snake_case`, `kebab-case` and `camelCase` for all tools.")
        .active(|ctx| Box::pin(naming::consistent(ctx))),
    Rule::server("models.titles", Models, &[])
        .requirement("Every tool has a human-readable title.")
        .hint("Give each tool a `title`: clients show it when they ask the user for consent.")
        .active(|ctx| Box::pin(naming::titles(ctx))),
    Rule::server("models.annotations", Models, &[])
        .requirement("Every tool states whether it is read-only.")
        .hint("Set `readOnlyHint`, and `destructiveHint` where `readOnlyHint` is false: clients use both to decide when to ask the user for consent.")
        .active(|ctx| Box::pin(naming::annotations(ctx))),
    Rule::server("models.argument-descriptions", Models, &[])
        .requirement("Every argument of a tool has a description.")
        .hint("Describe the argument in the input schema: its meaning, its format, an example.")
        .active(|ctx| Box::pin(schemas::descriptions(ctx))),
    Rule::server("models.required", Models, &[])
        .requirement("An input schema lists its required arguments.")
        .hint("List the mandatory arguments in `required`, and give the others a default.")
        .active(|ctx| Box::pin(schemas::required(ctx))),
    Rule::server("models.simple-schemas", Models, &[])
        .requirement("Input schemas are at most 5 levels deep, and no enumeration has more than 100 values.")
        .hint("Flatten the arguments or split the tool; provide long lists of values through another tool or completion.")
        .active(|ctx| Box::pin(schemas::simple(ctx))),
    Rule::server("models.output-schema", Models, &[])
        .requirement("A tool that returns structured content has an output schema.")
        .hint("Declare an `outputSchema`, which tells clients and models the structure of the result.")
        .active(|ctx| Box::pin(schemas::output(ctx))),
    Rule::server("models.list-cost", Models, &[])
        .requirement("The list of tools takes less than about 10,000 tokens.")
        .hint("Shorten the descriptions and schemas of the largest tools, or register fewer tools.")
        .active(|ctx| Box::pin(schemas::list_cost(ctx))),
];

/// Lists at most three names, in backticks.
fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    list_items(names.into_iter().map(|name| format!("`{name}`")))
}

/// Lists at most three items.
fn list_items(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<_> = items.into_iter().collect();
    match items.as_slice() {
        [first, second, third, more @ ..] if more.len() > 1 => {
            format!("{first}, {second}, {third} and {} more", more.len())
        }
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        items => items.concat(),
    }
}
