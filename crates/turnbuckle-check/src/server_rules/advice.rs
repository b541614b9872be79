//! What makes a server better for the models that use it. None of it is a duty.

mod naming;
mod schemas;

use crate::rule::{Area::Models, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("models.instructions", Models, &[])
        .requirement("The server has instructions that tell a model what it is for.")
        .fix("Say in `instructions` what the server is for, and how its tools work together.")
        .active(|ctx| Box::pin(naming::instructions(ctx))),
    Rule::server("models.tool-descriptions", Models, &[])
        .requirement("Every tool has a description.")
        .fix("Describe what the tool does, when to use it, and what it returns.")
        .active(|ctx| Box::pin(naming::descriptions(ctx))),
    Rule::server("models.distinct-descriptions", Models, &[])
        .requirement("No two tools have the same description.")
        .fix("Say in each description what sets the tool apart from the others.")
        .active(|ctx| Box::pin(naming::distinct(ctx))),
    Rule::server("models.description-length", Models, &[])
        .requirement("Descriptions of tools are at most 2,000 characters long.")
        .fix("Keep what a model needs to choose the tool, and move the rest to a resource or a prompt.")
        .active(|ctx| Box::pin(naming::length(ctx))),
    Rule::server("models.consistent-names", Models, &[])
        .requirement("The names of all tools are spelled in one style.")
        .fix("Choose one of `snake_case`, `kebab-case` and `camelCase` for all tools.")
        .active(|ctx| Box::pin(naming::consistent(ctx))),
    Rule::server("models.titles", Models, &[])
        .requirement("Tools have titles that people can read.")
        .fix("Give each tool a `title`: clients show it where a user has to agree.")
        .active(|ctx| Box::pin(naming::titles(ctx))),
    Rule::server("models.annotations", Models, &[])
        .requirement("Every tool says whether it only reads.")
        .fix("Set `readOnlyHint`, and `destructiveHint` where it is false: clients ask the user less often, and at the right time.")
        .active(|ctx| Box::pin(naming::annotations(ctx))),
    Rule::server("models.argument-descriptions", Models, &[])
        .requirement("Every argument of a tool has a description.")
        .fix("Describe the argument in the input schema: its meaning, its format, an example.")
        .active(|ctx| Box::pin(schemas::descriptions(ctx))),
    Rule::server("models.required", Models, &[])
        .requirement("An input schema says which arguments are required.")
        .fix("List the arguments in `required` that cannot be left out, and give the others a default.")
        .active(|ctx| Box::pin(schemas::required(ctx))),
    Rule::server("models.simple-schemas", Models, &[])
        .requirement("Input schemas are at most 5 levels deep, and no choice has more than 100 values.")
        .fix("Flatten the arguments, or split the tool; offer long lists of values through another tool or completion.")
        .active(|ctx| Box::pin(schemas::simple(ctx))),
    Rule::server("models.output-schema", Models, &[])
        .requirement("A tool that returns structured content has an output schema.")
        .fix("Declare an `outputSchema`, so that clients and models know what comes back.")
        .active(|ctx| Box::pin(schemas::output(ctx))),
    Rule::server("models.list-cost", Models, &[])
        .requirement("The list of tools takes less than about 10,000 tokens.")
        .fix("Shorten the descriptions and schemas of the costliest tools, or offer fewer tools.")
        .active(|ctx| Box::pin(schemas::list_cost(ctx))),
];

/// Puts names into a sentence, not too many of them.
fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    listed(names.into_iter().map(|name| format!("`{name}`")))
}

/// Puts things into a sentence, not too many of them.
fn listed(things: impl IntoIterator<Item = String>) -> String {
    let things: Vec<_> = things.into_iter().collect();
    match things.as_slice() {
        [first, second, third, more @ ..] if more.len() > 1 => {
            format!("{first}, {second}, {third} and {} more", more.len())
        }
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        things => things.concat(),
    }
}
