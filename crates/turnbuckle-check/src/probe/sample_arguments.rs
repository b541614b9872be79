//! Generates arguments that match an input schema, as few and as simple as possible.

use serde_json::{Map, Value, json};
use turnbuckle_schema::SchemaValidator;

/// The maximum nesting depth.
const MAX_DEPTH: usize = 16;
/// The maximum number of schemas to visit.
const MAX_SCHEMAS: usize = 2_000;
/// The maximum number of alternatives to try.
const MAX_CHOICES: usize = 16;
/// The maximum length of a generated string or array.
const MAX_LENGTH: u64 = 1_024;

/// Generates arguments that match an input schema, or returns the reason why it cannot.
pub(super) fn generate(schema: &Value) -> Result<Value, String> {
    let Value::Object(root) = schema else {
        return Err("the input schema is not an object".to_owned());
    };
    // Keywords that the generator does not support may still reject the value.
    let validator = SchemaValidator::lenient(root);
    let mut why = String::new();
    for trust in [SchemaTrust::All, SchemaTrust::None] {
        for choice in 0..choices(root).len().clamp(1, MAX_CHOICES) {
            let made = ArgumentGenerator::new(schema, trust).arguments(root, choice);
            let fits = made.and_then(|made| {
                let validator = validator.as_ref().map_err(ToString::to_string)?;
                let fits = validator.check("arguments", &made);
                fits.map_err(|mismatch| mismatch.to_string())?;
                Ok(made)
            });
            match fits {
                Ok(made) if made.is_object() => return Ok(made),
                Ok(_) => return Err("the input schema does not describe an object".to_owned()),
                Err(error) if why.is_empty() => why = error,
                Err(_) => {}
            }
        }
    }
    Err(why)
}

struct ArgumentGenerator<'a> {
    root: &'a Value,
    left: usize,
    trust: SchemaTrust,
}

/// The parts of a schema that are used as values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaTrust {
    All,
    None,
}

impl<'a> ArgumentGenerator<'a> {
    fn new(root: &'a Value, trust: SchemaTrust) -> Self {
        Self {
            root,
            left: MAX_SCHEMAS,
            trust,
        }
    }

    /// Generates all arguments, with the alternative at this index if there are several.
    fn arguments(&mut self, root: &'a Map<String, Value>, choice: usize) -> Result<Value, String> {
        if !is_object(root) {
            return self.value(self.root, MAX_DEPTH);
        }
        let chosen = choices(root).get(choice);
        self.object_with(root, chosen, MAX_DEPTH)
    }

    fn value(&mut self, schema: &'a Value, depth: usize) -> Result<Value, String> {
        let (Some(depth), Some(left)) = (depth.checked_sub(1), self.left.checked_sub(1)) else {
            return Err("the input schema is nested too deeply".to_owned());
        };
        self.left = left;
        let whole = schema;
        let Value::Object(schema) = schema else {
            return match schema {
                Value::Bool(false) => Err("a required property matches no value".to_owned()),
                _ => Ok(json!("check")),
            };
        };
        if let Some(value) = preset_value(schema, self.trust) {
            return Ok(value.clone());
        }
        if schema.contains_key("$ref") {
            return self.value(self.resolved(whole)?, depth);
        }
        if is_object(schema) {
            return self.object_with(schema, choices(schema).first(), depth);
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return self.all_of(schema, parts, depth);
        }
        match choices(schema) {
            [] => self.typed(schema, depth),
            choices => self.first_of(choices, depth),
        }
    }

    fn typed(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Result<Value, String> {
        match kind(schema) {
            "object" => self.object(schema, schema, depth),
            "array" => self.array(schema, depth),
            "string" => text(schema).map(Value::String),
            "integer" => number(schema, true),
            "number" => number(schema, false),
            "boolean" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            other => Err(format!("unknown type `{other}`")),
        }
    }

    /// Generates an object that satisfies all of `allOf` and the chosen alternative.
    fn object_with(
        &mut self,
        schema: &'a Map<String, Value>,
        chosen: Option<&'a Value>,
        depth: usize,
    ) -> Result<Value, String> {
        let mut whole = self.object(schema, schema, depth)?;
        let parts = schema.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten().chain(chosen) {
            let Value::Object(part) = self.resolved(part)? else {
                continue;
            };
            let made = self.object(part, schema, depth)?;
            if let (Value::Object(made), Value::Object(whole)) = (made, &mut whole) {
                whole.extend(made);
            }
        }
        Ok(whole)
    }

    /// Generates an object with the required properties. `whole` may describe properties that
    /// `schema` only requires.
    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        whole: &'a Map<String, Value>,
        depth: usize,
    ) -> Result<Value, String> {
        let required = schema.get("required").and_then(Value::as_array);
        let mut names: Vec<_> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let least = schema.get("minProperties").and_then(Value::as_u64);
        let others = schema.get("properties").and_then(Value::as_object);
        for (name, _) in others.into_iter().flatten() {
            if (names.len() as u64) < least.unwrap_or(0) && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut made = Map::new();
        for name in names {
            let described = [schema, whole].into_iter().find_map(|schema| {
                let properties = schema.get("properties")?;
                properties.get(name)
            });
            let value = self.value(described.unwrap_or(&Value::Bool(true)), depth);
            made.insert(
                name.to_owned(),
                value.map_err(|why| format!("`{name}`: {why}"))?,
            );
        }
        Ok(Value::Object(made))
    }

    /// Returns the target of a `$ref`, or the schema itself.
    fn resolved(&self, schema: &'a Value) -> Result<&'a Value, String> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(schema);
        };
        let target = reference
            .strip_prefix('#')
            .and_then(|at| self.root.pointer(at));
        target.ok_or_else(|| format!("unresolvable reference `{reference}`"))
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Result<Value, String> {
        let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if count > MAX_LENGTH {
            return Err(format!("an array of {count} items is required"));
        }
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map(Vec::as_slice).unwrap_or_default();
        let rest = schema.get("items").unwrap_or(&Value::Bool(true));
        let items =
            (0..usize::try_from(count).unwrap_or(0)).map(|at| first.get(at).unwrap_or(rest));
        items.map(|item| self.value(item, depth)).collect()
    }

    /// Generates a value for each part and merges objects; for other types the first part wins.
    fn all_of(
        &mut self,
        schema: &'a Map<String, Value>,
        parts: &'a [Value],
        depth: usize,
    ) -> Result<Value, String> {
        let mut whole = self.object(schema, schema, depth)?;
        for part in parts {
            match (self.value(part, depth)?, &mut whole) {
                (Value::Object(made), Value::Object(whole)) => whole.extend(made),
                (other, _) => return Ok(other),
            }
        }
        Ok(whole)
    }

    fn first_of(&mut self, choices: &'a [Value], depth: usize) -> Result<Value, String> {
        let mut why = "no alternative is left".to_owned();
        for choice in choices {
            match self.value(choice, depth) {
                Ok(Value::Null) => {}
                Ok(made) => return Ok(made),
                Err(error) => why = error,
            }
        }
        if choices.iter().any(|choice| choice["type"] == "null") {
            Ok(Value::Null)
        } else {
            Err(why)
        }
    }
}

/// Returns a constant, default, example or enum value of the schema.
fn preset_value(schema: &Map<String, Value>, trust: SchemaTrust) -> Option<&Value> {
    let first = |keyword| schema.get(keyword)?.as_array()?.first();
    let listed_value = || {
        let default = schema.get("default").filter(|value| !value.is_null());
        default.or_else(|| first("examples"))
    };
    (schema.get("const"))
        .or_else(|| (trust == SchemaTrust::All).then(listed_value).flatten())
        .or_else(|| first("enum"))
}

/// Returns the alternatives of `anyOf` or `oneOf`.
fn choices(schema: &Map<String, Value>) -> &[Value] {
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    let choices = choices.and_then(Value::as_array);
    choices.map(Vec::as_slice).unwrap_or_default()
}

/// Returns whether a schema describes an object on its own.
fn is_object(schema: &Map<String, Value>) -> bool {
    let described = schema.contains_key("properties") && !schema.contains_key("type");
    schema.get("type").is_some_and(|kind| kind == "object") || described
}

fn kind(schema: &Map<String, Value>) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|&kind| kind != "null").unwrap_or("null")
        }
        _ if schema.contains_key("properties") => "object",
        _ if schema.contains_key("items") => "array",
        _ if schema.contains_key("minimum") || schema.contains_key("maximum") => "integer",
        _ => "string",
    }
}

/// Sample strings to match patterns against.
const TEXTS: &[&str] = &[
    "check",
    "a",
    "A",
    "1",
    "CHECK",
    "check1",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "12:00",
    "1.0.0",
    "https://example.com/",
    "example.com",
    "check@example.com",
    "/check",
    "#000000",
    "00000000-0000-4000-8000-000000000000",
    "check/check",
    "000000",
    "10",
    "en",
    "US",
    "USD",
    "12345",
    "+12025550100",
    "v1.0.0",
    "check-1",
    "check_1",
    "CHECK-1",
    "@check",
    "check.txt",
    "0000000000000000000000000000000000000000",
    "0x0000000000000000000000000000000000000000",
];

fn text(schema: &Map<String, Value>) -> Result<String, String> {
    if let Some(Value::String(pattern)) = schema.get("pattern") {
        let mut constraints =
            Map::from_iter([("pattern".to_owned(), Value::from(pattern.as_str()))]);
        for keyword in ["minLength", "maxLength", "format"] {
            if let Some(value) = schema.get(keyword) {
                constraints.insert(keyword.to_owned(), value.clone());
            }
        }
        match SchemaValidator::new(&constraints) {
            Ok(validator) => return matching_text(&validator, pattern),
            // A pattern that is not supported here usually restates the format.
            Err(_) if schema.contains_key("format") => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    let length = |keyword| schema.get(keyword).and_then(Value::as_u64);
    let mut made = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("time") => "12:00:00Z",
        Some("duration") => "P1D",
        Some("email" | "idn-email") => "check@example.com",
        Some("uri" | "url" | "iri" | "uri-reference" | "iri-reference") => "https://example.com/",
        Some("uri-template") => "https://example.com/{a}",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("hostname" | "idn-hostname") => "example.com",
        Some("json-pointer") => "/check",
        _ => "check",
    }
    .to_owned();
    let least = length("minLength").unwrap_or(0);
    if least > MAX_LENGTH {
        return Err(format!("a string of {least} characters is required"));
    }
    while (made.len() as u64) < least {
        made.push('a');
    }
    if let Some(most) = length("maxLength").and_then(|most| usize::try_from(most).ok()) {
        made.truncate(most);
    }
    Ok(made)
}

/// Returns the first sample string that matches.
fn matching_text(validator: &SchemaValidator, pattern: &str) -> Result<String, String> {
    let mut texts = TEXTS.iter();
    let matching = texts.find(|text| validator.check("text", &json!(text)).is_ok());
    let matching = matching.ok_or_else(|| format!("no sample string matches `{pattern}`"))?;
    Ok((*matching).to_owned())
}

/// Returns the number nearest to one within the bounds.
fn number(schema: &Map<String, Value>, whole: bool) -> Result<Value, String> {
    let bound = |keyword| schema.get(keyword).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let unit = step.unwrap_or(if whole { 1.0 } else { 0.5 });
    let mut made = step.unwrap_or(1.0);
    let lowest = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + unit));
    let highest = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - unit));
    if let Some(highest) = highest {
        made = made.min((highest / unit).floor() * unit);
    }
    if let Some(lowest) = lowest {
        made = made.max((lowest / unit).ceil() * unit);
    }
    // Narrow bounds may not contain a multiple of the step.
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    if let (Some(low), Some(high), false, None) = (low, high, whole, step)
        && (made <= low || made >= high)
    {
        made = low.midpoint(high);
    }
    // Larger integers are not exact in every JSON implementation.
    let exact = (made.fract() == 0.0 && made.abs() < 9_007_199_254_740_992.0)
        .then(|| format!("{made}").parse::<i64>().ok())
        .flatten();
    match (exact, whole) {
        (Some(exact), _) => Ok(exact.into()),
        (None, false) => Ok(json!(made)),
        (None, true) => Err("no integer matches".to_owned()),
    }
}

#[cfg(test)]
mod tests;
