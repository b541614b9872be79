//! Formats a JSON Schema as a signature: `forecast(city: string, days?: integer 1..7 = 3) -> {summary: string}`.
//!
//! Deep, wide and recursive schemas are shortened. References are followed only inside the schema; nothing is
//! fetched.

use std::cell::Cell;

use serde_json::Value;
use turnbuckle_protocol::types::{JsonObject, Prompt, Tool};

use super::{sanitize, style, wrap};

/// Returns the signature of a tool, with styles; on several lines if it does not fit on one.
pub(crate) fn for_tool(tool: &Tool, width: usize) -> String {
    let types = TypeText::new(&tool.input_schema);
    let parameters = parameters(&tool.input_schema)
        .map(|parameter| parameter.render(&types))
        .collect::<Vec<_>>();
    let output = tool.output_schema.as_ref().map(|schema| {
        let shown = TypeText::new(schema).root();
        format!(" -> {}", style::styled(style::TYPE, &shown))
    });
    layout(&tool.name, &parameters, &output.unwrap_or_default(), width)
}

/// Returns the signature of a prompt. Its arguments are all text.
pub(crate) fn for_prompt(prompt: &Prompt, width: usize) -> String {
    let arguments = prompt.arguments.iter().flatten();
    let parameters = arguments.map(|argument| {
        let suffix = match argument.required {
            Some(true) => "",
            _ => "?",
        };
        format!("{}{suffix}", sanitize::line(&argument.name))
    });
    layout(&prompt.name, &parameters.collect::<Vec<_>>(), "", width)
}

/// A parameter of a tool.
#[derive(Debug)]
pub(crate) struct ToolParameter<'a> {
    /// The name.
    pub(crate) name: &'a str,
    /// True if it is required.
    pub(crate) required: bool,
    /// The schema of its value.
    pub(crate) schema: &'a Value,
}

impl ToolParameter<'_> {
    fn render(&self, types: &TypeText<'_>) -> String {
        let suffix = if self.required { "" } else { "?" };
        let kind = style::styled(style::TYPE, &types.value(self.schema));
        format!(
            "{}{suffix}: {kind}{}",
            sanitize::line(self.name),
            self.default()
        )
    }

    /// Returns ` = 3` if there is a default.
    pub(crate) fn default(&self) -> String {
        let value = self.schema.get("default");
        value.map_or(String::new(), |value| format!(" = {}", literal(value)))
    }

    /// Returns the description in the schema.
    pub(crate) fn description(&self) -> &str {
        let text = self.schema.get("description").and_then(Value::as_str);
        text.unwrap_or_default()
    }
}

/// Returns the parameters in a tool's input schema, required ones first.
pub(crate) fn parameters(schema: &JsonObject) -> impl Iterator<Item = ToolParameter<'_>> {
    let required = move |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut parameters: Vec<_> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| ToolParameter {
            name,
            required: required(name),
            schema,
        })
        .collect();
    parameters.sort_by_key(|parameter| !parameter.required);
    parameters.into_iter()
}

fn layout(name: &str, parameters: &[String], end: &str, width: usize) -> String {
    let name = style::styled(style::NAME, &sanitize::line(name));
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

/// Describes the types in a schema.
#[derive(Debug)]
pub(crate) struct TypeText<'a> {
    root: &'a JsonObject,
    /// The remaining number of schema parts to show. A small schema can expand to a huge one.
    budget: Cell<u32>,
}

/// The maximum depth of objects.
const MAX_DEPTH: u32 = 3;
/// The maximum number of members or alternatives.
const MAX_MEMBERS: usize = 8;
/// The maximum number of schema parts.
const MAX_PARTS: u32 = 400;
/// The maximum number of characters of a literal.
const MAX_LITERAL_CHARS: usize = 40;

impl<'a> TypeText<'a> {
    /// Describes the types of a schema and its parts.
    pub(crate) fn new(root: &'a JsonObject) -> Self {
        Self {
            root,
            budget: Cell::new(MAX_PARTS),
        }
    }

    /// Returns the type of the whole schema.
    pub(crate) fn root(&self) -> String {
        self.object_schema(self.root, MAX_DEPTH)
    }

    /// Returns the type of a part of the schema.
    pub(crate) fn value(&self, schema: &Value) -> String {
        self.type_text(schema, MAX_DEPTH - 1)
    }

    /// Follows references inside the schema; `None` for a missing, circular or external reference.
    pub(crate) fn resolve<'s>(&'s self, schema: &'s Value) -> Option<&'s Value> {
        let mut schema = schema;
        for _ in 0..8 {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
                return Some(schema);
            };
            schema = pointer(self.root, reference.strip_prefix('#')?)?;
        }
        None
    }

    fn type_text(&self, schema: &Value, depth: u32) -> String {
        let left = self.budget.get();
        if left == 0 {
            return "…".to_owned();
        }
        self.budget.set(left - 1);
        match self.resolve(schema) {
            Some(Value::Bool(false)) => "never".to_owned(),
            Some(Value::Object(object)) => self.object_schema(object, depth),
            Some(_) => "any".to_owned(),
            None => reference_name(schema),
        }
    }

    fn object_schema(&self, schema: &JsonObject, depth: u32) -> String {
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return joined(values.iter().map(literal), " | ");
        }
        for (keyword, between) in [("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")] {
            if let Some(parts) = schema.get(keyword).and_then(Value::as_array)
                && depth > 0
            {
                return joined(
                    parts.iter().map(|part| self.type_text(part, depth - 1)),
                    between,
                );
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, depth),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                joined(names.map(|name| self.named(name, schema, depth)), " | ")
            }
            _ if schema.contains_key("properties") => self.members(schema, depth),
            _ => "any".to_owned(),
        }
    }

    fn named(&self, name: &str, schema: &JsonObject, depth: u32) -> String {
        match name {
            "integer" | "number" => name.to_owned() + &range(schema),
            "string" => match schema.get("format").and_then(Value::as_str) {
                Some(format) => format!("string {}", cut(&sanitize::line(format))),
                None => name.to_owned(),
            },
            "array" => self.array(schema, depth),
            "object" => self.members(schema, depth),
            _ => cut(&sanitize::line(name)),
        }
    }

    fn array(&self, schema: &JsonObject, depth: u32) -> String {
        let item = match schema.get("items") {
            Some(items) if depth > 0 => self.type_text(items, depth - 1),
            _ => "any".to_owned(),
        };
        if has_outer_space(&item) {
            format!("({item})[]")
        } else {
            format!("{item}[]")
        }
    }

    fn members(&self, schema: &JsonObject, depth: u32) -> String {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) if depth > 0 => {
                    format!("{{[key]: {}}}", self.type_text(values, depth - 1))
                }
                _ => "object".to_owned(),
            };
        };
        if depth == 0 {
            return "{…}".to_owned();
        }
        let members = parameters(schema).map(|parameter| {
            let suffix = if parameter.required { "" } else { "?" };
            let type_text = self.type_text(parameter.schema, depth - 1);
            format!(
                "{}{suffix}: {type_text}",
                cut(&sanitize::line(parameter.name))
            )
        });
        if properties.is_empty() {
            "object".to_owned()
        } else {
            format!("{{{}}}", joined(members, ", "))
        }
    }
}

/// Returns whether a type has spaces outside of braces, so that it needs parentheses before `[]`.
fn has_outer_space(type_text: &str) -> bool {
    let mut open = 0;
    type_text.chars().any(|ch| {
        match ch {
            '{' | '(' => open += 1,
            '}' | ')' => open -= 1,
            _ => {}
        }
        ch == ' ' && open == 0
    })
}

/// Returns a value as shortened JSON.
fn literal(value: &Value) -> String {
    cut(&sanitize::line(&value.to_string()))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_LITERAL_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    let mut shown: Vec<_> = parts.take(MAX_MEMBERS + 1).collect();
    if shown.len() > MAX_MEMBERS {
        shown[MAX_MEMBERS] = "…".to_owned();
    }
    shown.join(between)
}

/// Returns ` 1..7`, ` 1..`, ` ..7`; an exclusive bound has `<` or `>` in front.
fn range(schema: &JsonObject) -> String {
    let bound = |inclusive: &str, exclusive: &str, mark: &str| {
        let exclusive = schema.get(exclusive).filter(|bound| bound.is_number());
        let inclusive = schema.get(inclusive).filter(|bound| bound.is_number());
        match (exclusive, inclusive) {
            (Some(bound), _) => format!("{mark}{bound}"),
            (None, Some(bound)) => bound.to_string(),
            (None, None) => String::new(),
        }
    };
    let low = bound("minimum", "exclusiveMinimum", ">");
    let high = bound("maximum", "exclusiveMaximum", "<");
    if low.is_empty() && high.is_empty() {
        String::new()
    } else {
        format!(" {low}..{high}")
    }
}

/// Looks up a JSON Pointer. The empty pointer, which is the whole schema, returns `None`.
fn pointer<'a>(root: &'a JsonObject, pointer: &str) -> Option<&'a Value> {
    let mut steps = pointer.strip_prefix('/')?.splitn(2, '/');
    let first = root.get(&unescape(steps.next()?))?;
    match steps.next() {
        Some(rest) => first.pointer(&format!("/{rest}")),
        None => Some(first),
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Returns the name of a reference that cannot be resolved.
fn reference_name(schema: &Value) -> String {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|text| text.rsplit(['/', '#']).find(|part| !part.is_empty()));
    name.map_or("any".to_owned(), |name| cut(&sanitize::line(name)))
}

#[cfg(test)]
mod tests;
