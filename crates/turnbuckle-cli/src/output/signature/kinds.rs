//! What a value has to be, in a few words.

use std::cell::Cell;

use serde_json::Value;
use turnbuckle_protocol::types::JsonObject;

use super::super::plain;

/// Says what the values are that a schema and its parts describe.
#[derive(Debug)]
pub(crate) struct Kinds<'a> {
    root: &'a JsonObject,
    /// How many more parts are looked at. A small schema can unfold into a huge one.
    budget: Cell<u32>,
}

/// How deep objects are shown.
const DEPTH: u32 = 3;
/// How many members or alternatives are shown.
const MEMBERS: usize = 8;
/// How many parts of a schema are shown.
const PARTS: u32 = 400;
/// How many letters of a literal are shown.
const LETTERS: usize = 40;

impl<'a> Kinds<'a> {
    /// Speaks about a schema and its parts.
    pub(crate) fn of(root: &'a JsonObject) -> Self {
        Self {
            root,
            budget: Cell::new(PARTS),
        }
    }

    /// Says what the whole schema describes.
    pub(crate) fn root(&self) -> String {
        self.object_schema(self.root, DEPTH)
    }

    /// Says what a part of the schema describes.
    pub(crate) fn of_value(&self, schema: &Value) -> String {
        self.kind(schema, DEPTH - 1)
    }

    /// Follows references inside of the schema; `None` if one leads nowhere, in a circle, or out of the document.
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

    fn kind(&self, schema: &Value, depth: u32) -> String {
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
                return joined(parts.iter().map(|part| self.kind(part, depth - 1)), between);
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
                Some(format) => format!("string {}", cut(&plain::line(format))),
                None => name.to_owned(),
            },
            "array" => self.array(schema, depth),
            "object" => self.members(schema, depth),
            _ => cut(&plain::line(name)),
        }
    }

    fn array(&self, schema: &JsonObject, depth: u32) -> String {
        let item = match schema.get("items") {
            Some(items) if depth > 0 => self.kind(items, depth - 1),
            _ => "any".to_owned(),
        };
        match has_gaps(&item) {
            true => format!("({item})[]"),
            false => format!("{item}[]"),
        }
    }

    fn members(&self, schema: &JsonObject, depth: u32) -> String {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) if depth > 0 => {
                    format!("{{[key]: {}}}", self.kind(values, depth - 1))
                }
                _ => "object".to_owned(),
            };
        };
        if depth == 0 {
            return "{…}".to_owned();
        }
        let members = super::parameters(schema).map(|parameter| {
            let mark = if parameter.required { "" } else { "?" };
            let kind = self.kind(parameter.schema, depth - 1);
            format!("{}{mark}: {kind}", cut(&plain::line(parameter.name)))
        });
        match properties.is_empty() {
            true => "object".to_owned(),
            false => format!("{{{}}}", joined(members, ", ")),
        }
    }
}

/// Says whether a kind has spaces outside of braces, so that `[]` behind it would belong to its end alone.
fn has_gaps(kind: &str) -> bool {
    let mut open = 0;
    kind.chars().any(|letter| {
        match letter {
            '{' | '(' => open += 1,
            '}' | ')' => open -= 1,
            _ => {}
        }
        letter == ' ' && open == 0
    })
}

/// Returns a value as it stands in JSON, shortened.
pub(super) fn literal(value: &Value) -> String {
    cut(&plain::line(&value.to_string()))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    let mut shown: Vec<_> = parts.take(MEMBERS + 1).collect();
    if shown.len() > MEMBERS {
        shown[MEMBERS] = "…".to_owned();
    }
    shown.join(between)
}

/// Returns ` 1..7`, ` 1..`, ` ..7`; a bound that does not belong to the range has `<` or `>` before it.
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
    let least = bound("minimum", "exclusiveMinimum", ">");
    let most = bound("maximum", "exclusiveMaximum", "<");
    match least.is_empty() && most.is_empty() {
        true => String::new(),
        false => format!(" {least}..{most}"),
    }
}

/// Looks up a JSON Pointer; the empty one is the whole schema, which is no part of itself here.
fn pointer<'a>(root: &'a JsonObject, pointer: &str) -> Option<&'a Value> {
    let mut steps = pointer.strip_prefix('/')?.splitn(2, '/');
    let first = root.get(&unescaped(steps.next()?))?;
    match steps.next() {
        Some(rest) => first.pointer(&format!("/{rest}")),
        None => Some(first),
    }
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// Names what a reference means when it cannot be shown itself.
fn reference_name(schema: &Value) -> String {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let name = reference.and_then(|text| text.rsplit(['/', '#']).find(|part| !part.is_empty()));
    name.map_or("any".to_owned(), |name| cut(&plain::line(name)))
}
