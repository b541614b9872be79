//! What makes a server better for the models that use it. None of it is a duty.

mod cost;
mod schemas;
mod words;

use crate::rule::{Area::Models, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("models.instructions", Models, &[])
        .says("The server has instructions that tell a model what it is for.")
        .cure("Say in `instructions` what the server is for, and how its tools work together.")
        .ask(|visit| Box::pin(words::instructions(visit))),
    Rule::server("models.tool-descriptions", Models, &[])
        .says("Every tool has a description.")
        .cure("Describe what the tool does, when to use it, and what it returns.")
        .ask(|visit| Box::pin(words::descriptions(visit))),
    Rule::server("models.distinct-descriptions", Models, &[])
        .says("No two tools have the same description.")
        .cure("Say in each description what sets the tool apart from the others.")
        .ask(|visit| Box::pin(words::distinct(visit))),
    Rule::server("models.description-length", Models, &[])
        .says("Descriptions of tools are at most 2,000 characters long.")
        .cure("Keep what a model needs to choose the tool, and move the rest to a resource or a prompt.")
        .ask(|visit| Box::pin(words::length(visit))),
    Rule::server("models.consistent-names", Models, &[])
        .says("The names of all tools are spelled in one style.")
        .cure("Choose one of `snake_case`, `kebab-case` and `camelCase` for all tools.")
        .ask(|visit| Box::pin(words::consistent(visit))),
    Rule::server("models.titles", Models, &[])
        .says("Tools have titles that people can read.")
        .cure("Give each tool a `title`: clients show it where a user has to agree.")
        .ask(|visit| Box::pin(words::titles(visit))),
    Rule::server("models.annotations", Models, &[])
        .says("Every tool says whether it only reads.")
        .cure("Set `readOnlyHint`, and `destructiveHint` where it is false: clients ask the user less often, and at the right time.")
        .ask(|visit| Box::pin(words::annotations(visit))),
    Rule::server("models.argument-descriptions", Models, &[])
        .says("Every argument of a tool has a description.")
        .cure("Describe the argument in the input schema: its meaning, its format, an example.")
        .ask(|visit| Box::pin(schemas::descriptions(visit))),
    Rule::server("models.required", Models, &[])
        .says("An input schema says which arguments are required.")
        .cure("List the arguments in `required` that cannot be left out, and give the others a default.")
        .ask(|visit| Box::pin(schemas::required(visit))),
    Rule::server("models.simple-schemas", Models, &[])
        .says("Input schemas are at most 5 levels deep, and no choice has more than 100 values.")
        .cure("Flatten the arguments, or split the tool; offer long lists of values through another tool or completion.")
        .ask(|visit| Box::pin(schemas::simple(visit))),
    Rule::server("models.output-schema", Models, &[])
        .says("A tool that returns structured content has an output schema.")
        .cure("Declare an `outputSchema`, so that clients and models know what comes back.")
        .ask(|visit| Box::pin(schemas::output(visit))),
    Rule::server("models.list-cost", Models, &[])
        .says("The list of tools takes less than about 10,000 tokens.")
        .cure("Shorten the descriptions and schemas of the costliest tools, or offer fewer tools.")
        .ask(|visit| Box::pin(cost::list(visit))),
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
