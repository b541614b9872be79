//! What a schema asks for that reading a value into a Rust type does not find out.
//!
//! Where a keyword may stand for a Rust type or for an attribute beside it, it counts as asking for more: to check twice
//! costs little, and not to check would break the schema's word. Two things no schema tells: an enumeration that is a
//! definition of its own is taken for that of an `enum`, and what is `required` for that of fields without a default.

use serde_json::{Map, Value};

/// Keywords that are looked at when a value is checked, beside those that types stand for.
const ASSERTIONS: [&str; 31] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "allOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "if",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// What holds of the type that a format names, and what its schema therefore says about bounds.
const WIDTHS: [(&str, Option<i64>, Option<i64>); 14] = [
    ("int8", Some(-128), Some(127)),
    ("int16", Some(-32_768), Some(32_767)),
    ("int32", None, None),
    ("int64", None, None),
    ("int128", None, None),
    ("int", None, None),
    ("uint8", Some(0), Some(255)),
    ("uint16", Some(0), Some(65_535)),
    ("uint32", Some(0), None),
    ("uint64", Some(0), None),
    ("uint128", Some(0), None),
    ("uint", Some(0), None),
    ("float", None, None),
    ("double", None, None),
];

/// Whether the schema of a type asks for more than the type itself.
///
/// Wants the schema as it is generated, with the formats that name Rust types.
pub(super) fn asks_more(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords
            .iter()
            .any(|(keyword, value)| keyword_asks_more(keywords, keyword, value)),
        // `false` fits nothing.
        other => *other == Value::Bool(false),
    }
}

/// Whether a schema by hand asks for more than an object.
pub(super) fn asks_anything(schema: &Map<String, Value>) -> bool {
    schema.iter().any(|(keyword, value)| match &**keyword {
        "type" | "$schema" | "$id" | "$comment" | "title" | "description" | "default"
        | "examples" => false,
        "properties" | "$defs" => value.as_object().is_none_or(|members| !members.is_empty()),
        "additionalProperties" => *value != Value::Bool(true),
        _ => true,
    })
}

fn keyword_asks_more(keywords: &Map<String, Value>, keyword: &str, value: &Value) -> bool {
    match keyword {
        "properties" => members(value).any(asks_more),
        "$defs" | "definitions" => {
            members(value).any(|definition| !is_enumeration(definition) && asks_more(definition))
        }
        "items" | "additionalProperties" => asks_more(value),
        "anyOf" => !is_optional(value) || items(value).iter().any(asks_more),
        "minimum" => width(keywords).is_none_or(|(least, _)| !is_bound(value, least)),
        "maximum" => width(keywords).is_none_or(|(_, most)| !is_bound(value, most)),
        "format" => width(keywords).is_none(),
        _ => ASSERTIONS.contains(&keyword),
    }
}

/// The bounds of the type that the format names, if it names a type of numbers.
fn width(keywords: &Map<String, Value>) -> Option<(Option<i64>, Option<i64>)> {
    let format = keywords.get("format")?.as_str()?;
    let (_, least, most) = WIDTHS.iter().find(|(name, ..)| *name == format)?;
    Some((*least, *most))
}

fn is_bound(limit: &Value, bound: Option<i64>) -> bool {
    bound.is_some() && limit.as_i64() == bound
}

/// Whether alternatives are those of an `Option`: something or null.
fn is_optional(alternatives: &Value) -> bool {
    matches!(items(alternatives), [_, null] if null.get("type") == Some(&Value::from("null")))
}

/// Whether a schema lists the names of variants, at once or one by one with their descriptions.
fn is_enumeration(schema: &Value) -> bool {
    let is_string = schema.get("type") == Some(&Value::from("string"));
    let is_listed = schema.get("enum").is_some() || schema.get("const").is_some();
    let is_plain = members(schema).count() <= 3;
    match schema.get("oneOf") {
        Some(variants) => !is_string && items(variants).iter().all(is_enumeration),
        None => is_string && is_listed && is_plain,
    }
}

fn members(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(Map::values)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
