//! Finds constraints of a schema that deserialization does not check.
//!
//! A keyword that may come from a type or from an attribute counts as a constraint: checking twice is cheap, not
//! checking would violate the schema. Two cases are assumed, not derived: an enumeration in a definition belongs to an
//! `enum`, and `required` lists fields without a default.

use serde_json::{Map, Value};

/// Constraint keywords that types do not express.
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

/// Formats of number types, and the bounds that their schemas contain.
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

/// Returns whether a generated schema has constraints beyond its type.
///
/// Expects the generated schema, including the formats of Rust types.
pub(super) fn needs_validation(schema: &Value) -> bool {
    match schema {
        Value::Object(keywords) => keywords
            .iter()
            .any(|(keyword, value)| keyword_needs_validation(keywords, keyword, value)),
        // `false` matches nothing.
        other => *other == Value::Bool(false),
    }
}

/// Returns whether a custom schema has constraints beyond being an object.
pub(super) fn constrains_members(schema: &Map<String, Value>) -> bool {
    schema.iter().any(|(keyword, value)| match &**keyword {
        "type" | "$schema" | "$id" | "$comment" | "title" | "description" | "default"
        | "examples" => false,
        "properties" | "$defs" => value.as_object().is_none_or(|members| !members.is_empty()),
        "additionalProperties" => *value != Value::Bool(true),
        _ => true,
    })
}

fn keyword_needs_validation(keywords: &Map<String, Value>, keyword: &str, value: &Value) -> bool {
    match keyword {
        "properties" => members(value).any(needs_validation),
        "$defs" | "definitions" => members(value)
            .any(|definition| !is_enumeration(definition) && needs_validation(definition)),
        "items" | "additionalProperties" => needs_validation(value),
        "anyOf" => !is_optional(value) || items(value).iter().any(needs_validation),
        "minimum" => width(keywords).is_none_or(|(least, _)| !is_bound(value, least)),
        "maximum" => width(keywords).is_none_or(|(_, most)| !is_bound(value, most)),
        "format" => width(keywords).is_none(),
        _ => ASSERTIONS.contains(&keyword),
    }
}

/// Returns the bounds of the number type that the format names.
fn width(keywords: &Map<String, Value>) -> Option<(Option<i64>, Option<i64>)> {
    let format = keywords.get("format")?.as_str()?;
    let (_, least, most) = WIDTHS.iter().find(|(name, ..)| *name == format)?;
    Some((*least, *most))
}

fn is_bound(limit: &Value, bound: Option<i64>) -> bool {
    bound.is_some() && limit.as_i64() == bound
}

/// Returns whether the alternatives are those of an `Option`: a schema or null.
fn is_optional(alternatives: &Value) -> bool {
    matches!(items(alternatives), [_, null] if null.get("type") == Some(&Value::from("null")))
}

/// Returns whether a schema lists the names of enum variants.
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
