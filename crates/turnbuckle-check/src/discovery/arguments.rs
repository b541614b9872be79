//! Makes up arguments that fit an input schema: as few and as plain as it allows.

use serde_json::{Map, Value, json};
use turnbuckle_schema::Validator;

/// How deep a schema is followed.
const DEPTH: usize = 16;
/// How many schemas are looked at in all.
const SCHEMAS: usize = 2_000;
/// How many kinds of arguments are tried.
const CHOICES: usize = 16;
/// The longest text or list that is made up.
const LONGEST: u64 = 1_024;

/// Makes up arguments that fit an input schema; says why it cannot.
pub(super) fn make(schema: &Value) -> Result<Value, String> {
    let Value::Object(root) = schema else {
        return Err("the input schema is no object".to_owned());
    };
    // Keywords that the maker does not know may still say no.
    let validator = Validator::lenient(root);
    let mut why = String::new();
    for trust in [Trust::All, Trust::Nothing] {
        for choice in 0..choices(root).len().clamp(1, CHOICES) {
            let made = Maker::new(schema, trust).arguments(root, choice);
            let fits = made.and_then(|made| {
                let validator = validator.as_ref().map_err(ToString::to_string)?;
                let fits = validator.check("arguments", &made);
                fits.map_err(|mismatch| mismatch.to_string())?;
                Ok(made)
            });
            match fits {
                Ok(made) if made.is_object() => return Ok(made),
                Ok(_) => return Err("the input schema asks for no object".to_owned()),
                Err(error) if why.is_empty() => why = error,
                Err(_) => {}
            }
        }
    }
    Err(why)
}

struct Maker<'a> {
    root: &'a Value,
    left: usize,
    trust: Trust,
}

/// Whether defaults and examples are taken for what they say that they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    All,
    Nothing,
}

impl<'a> Maker<'a> {
    fn new(root: &'a Value, trust: Trust) -> Self {
        Self {
            root,
            left: SCHEMAS,
            trust,
        }
    }

    /// Makes all arguments; where there are several kinds of them, those of the one at this place.
    fn arguments(&mut self, root: &'a Map<String, Value>, choice: usize) -> Result<Value, String> {
        if !is_object(root) {
            return self.value(self.root, DEPTH);
        }
        let chosen = choices(root).get(choice);
        self.object_with(root, chosen, DEPTH)
    }

    fn value(&mut self, schema: &'a Value, depth: usize) -> Result<Value, String> {
        let (Some(depth), Some(left)) = (depth.checked_sub(1), self.left.checked_sub(1)) else {
            return Err("the input schema is too deep".to_owned());
        };
        self.left = left;
        let whole = schema;
        let Value::Object(schema) = schema else {
            return match schema {
                Value::Bool(false) => Err("a property that nothing fits is required".to_owned()),
                _ => Ok(json!("check")),
            };
        };
        if let Some(value) = ready(schema, self.trust) {
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
            other => Err(format!("`{other}` is no type")),
        }
    }

    /// Makes an object that has all of its parts, and what was chosen.
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

    /// Makes an object of what is required; `whole` may describe what the part that requires it does not.
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

    /// Returns what a schema refers to, or itself.
    fn resolved(&self, schema: &'a Value) -> Result<&'a Value, String> {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(schema);
        };
        let target = reference
            .strip_prefix('#')
            .and_then(|at| self.root.pointer(at));
        target.ok_or_else(|| format!("`{reference}` leads nowhere"))
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Result<Value, String> {
        let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if count > LONGEST {
            return Err(format!("a list of {count} is asked for"));
        }
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map(Vec::as_slice).unwrap_or_default();
        let rest = schema.get("items").unwrap_or(&Value::Bool(true));
        let items =
            (0..usize::try_from(count).unwrap_or(0)).map(|at| first.get(at).unwrap_or(rest));
        items.map(|item| self.value(item, depth)).collect()
    }

    /// Makes a value for each part; objects are put together, of others the first that can be made counts.
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
        let mut why = "nothing is left to choose from".to_owned();
        for choice in choices {
            match self.value(choice, depth) {
                Ok(Value::Null) => {}
                Ok(made) => return Ok(made),
                Err(error) => why = error,
            }
        }
        match choices.iter().any(|choice| choice["type"] == "null") {
            true => Ok(Value::Null),
            false => Err(why),
        }
    }
}

/// Returns a value that the schema itself holds ready.
fn ready(schema: &Map<String, Value>, trust: Trust) -> Option<&Value> {
    let first = |keyword| schema.get(keyword)?.as_array()?.first();
    let said = || {
        let default = schema.get("default").filter(|value| !value.is_null());
        default.or_else(|| first("examples"))
    };
    (schema.get("const"))
        .or_else(|| (trust == Trust::All).then(said).flatten())
        .or_else(|| first("enum"))
}

/// Returns what there is a choice of.
fn choices(schema: &Map<String, Value>) -> &[Value] {
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    let choices = choices.and_then(Value::as_array);
    choices.map(Vec::as_slice).unwrap_or_default()
}

/// Says whether a schema describes an object by itself, whatever else it says.
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

/// Texts of many kinds, for a pattern to choose from.
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
        let mut kept = Map::from_iter([("pattern".to_owned(), Value::from(pattern.as_str()))]);
        for keyword in ["minLength", "maxLength", "format"] {
            if let Some(value) = schema.get(keyword) {
                kept.insert(keyword.to_owned(), value.clone());
            }
        }
        match Validator::new(&kept) {
            Ok(validator) => return known(&validator, pattern),
            // A pattern that cannot be read here says again what the format says.
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
    if least > LONGEST {
        return Err(format!("a text of {least} characters is asked for"));
    }
    while (made.len() as u64) < least {
        made.push('a');
    }
    if let Some(most) = length("maxLength").and_then(|most| usize::try_from(most).ok()) {
        made.truncate(most);
    }
    Ok(made)
}

/// Returns a text of many that fits.
fn known(validator: &Validator, pattern: &str) -> Result<String, String> {
    let mut texts = TEXTS.iter();
    let fitting = texts.find(|text| validator.check("text", &json!(text)).is_ok());
    let fitting = fitting.ok_or_else(|| format!("nothing is known that fits `{pattern}`"))?;
    Ok((*fitting).to_owned())
}

/// The number nearest to one that the bounds allow.
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
    // Between narrow bounds there may be no multiple of the unit.
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum"));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum"));
    if let (Some(low), Some(high), false, None) = (low, high, whole, step)
        && (made <= low || made >= high)
    {
        made = low.midpoint(high);
    }
    // Beyond this a number of JSON is no longer exact for everybody.
    let exact = (made.fract() == 0.0 && made.abs() < 9_007_199_254_740_992.0)
        .then(|| format!("{made}").parse::<i64>().ok())
        .flatten();
    match (exact, whole) {
        (Some(exact), _) => Ok(exact.into()),
        (None, false) => Ok(json!(made)),
        (None, true) => Err("no whole number fits".to_owned()),
    }
}

#[cfg(test)]
mod tests;
