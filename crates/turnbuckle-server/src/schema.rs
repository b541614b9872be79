//! JSON Schemas of Rust types, as tools list them.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// The schema of what a handler reads.
pub(crate) fn of_input<T: JsonSchema>() -> Map<String, Value> {
    tidy(
        SchemaSettings::draft2020_12()
            .for_deserialize()
            .into_generator()
            .into_root_schema_for::<T>(),
    )
}

/// The schema of what a handler returns.
pub(crate) fn of_output<T: JsonSchema>() -> Map<String, Value> {
    tidy(
        SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator()
            .into_root_schema_for::<T>(),
    )
}

/// Makes sure that a schema says `"type": "object"` at its root, as every revision demands of an input schema.
///
/// # Panics
///
/// If the schema describes something else.
pub(crate) fn require_object(schema: &mut Map<String, Value>, tool: &str) {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        None => {
            schema.insert("type".into(), "object".into());
        }
        Some(other) => panic!(
            "the arguments of `{tool}` must be described by an object schema, not by type {other}"
        ),
    }
}

/// Drops what a model pays for and does not need: the dialect is the default one, the title a Rust name.
fn tidy(schema: schemars::Schema) -> Map<String, Value> {
    let Value::Object(mut schema) = schema.into() else {
        return Map::new();
    };
    schema.remove("$schema");
    schema.remove("title");
    schema
}
