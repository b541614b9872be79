//! A JSON Schema as a signature: `forecast(city: string, days?: integer 1..7 = 3) -> {summary: string}`.
//!
//! Shortened where a schema is deep, wide or refers to itself. References are followed only inside of the schema;
//! nothing is ever fetched.

mod kinds;

use serde_json::Value;
use turnbuckle_protocol::types::{JsonObject, Prompt, Tool};

use super::{plain, style, wrap};
pub(crate) use kinds::Kinds;

/// Returns the signature of a tool, with colours; over several lines if it does not fit on one.
pub(crate) fn of_tool(tool: &Tool, width: usize) -> String {
    let kinds = Kinds::of(&tool.input_schema);
    let parameters = parameters(&tool.input_schema)
        .map(|parameter| parameter.render(&kinds))
        .collect::<Vec<_>>();
    let output = tool.output_schema.as_ref().map(|schema| {
        let shown = Kinds::of(schema).root();
        format!(" -> {}", style::paint(style::TYPE, &shown))
    });
    layout(&tool.name, &parameters, &output.unwrap_or_default(), width)
}

/// Returns the signature of a prompt: all its arguments are text.
pub(crate) fn of_prompt(prompt: &Prompt, width: usize) -> String {
    let arguments = prompt.arguments.iter().flatten();
    let parameters = arguments.map(|argument| {
        let mark = match argument.required {
            Some(true) => "",
            _ => "?",
        };
        format!("{}{mark}", plain::line(&argument.name))
    });
    layout(&prompt.name, &parameters.collect::<Vec<_>>(), "", width)
}

/// One parameter of a tool.
#[derive(Debug)]
pub(crate) struct Parameter<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Whether a call needs it.
    pub(crate) required: bool,
    /// What it has to be.
    pub(crate) schema: &'a Value,
}

impl Parameter<'_> {
    fn render(&self, kinds: &Kinds<'_>) -> String {
        let mark = if self.required { "" } else { "?" };
        let kind = style::paint(style::TYPE, &kinds.of_value(self.schema));
        format!("{}{mark}: {kind}{}", plain::line(self.name), self.default())
    }

    /// Returns ` = 3` if there is a default.
    pub(crate) fn default(&self) -> String {
        let value = self.schema.get("default");
        value.map_or(String::new(), |value| {
            format!(" = {}", kinds::literal(value))
        })
    }

    /// Returns what the schema says about it.
    pub(crate) fn description(&self) -> &str {
        let text = self.schema.get("description").and_then(Value::as_str);
        text.unwrap_or_default()
    }
}

/// Returns the parameters that the schema of a tool's arguments names: those that are required come first.
pub(crate) fn parameters(schema: &JsonObject) -> impl Iterator<Item = Parameter<'_>> {
    let required = move |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut parameters: Vec<_> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Parameter {
            name,
            required: required(name),
            schema,
        })
        .collect();
    parameters.sort_by_key(|parameter| !parameter.required);
    parameters.into_iter()
}

fn layout(name: &str, parameters: &[String], end: &str, width: usize) -> String {
    let name = style::paint(style::NAME, &plain::line(name));
    let short = format!("{name}({}){end}", parameters.join(", "));
    if wrap::width(&short) <= width || parameters.is_empty() {
        return short;
    }
    let lines: String = parameters
        .iter()
        .map(|parameter| format!("    {parameter},\n"))
        .collect();
    format!("{name}(\n{lines}){end}")
}

#[cfg(test)]
mod tests;
