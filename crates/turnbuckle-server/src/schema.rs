//! JSON Schemas of Rust types, as tools list them.

mod beyond_types;

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value};

/// Formats that Rust types have and JSON Schema has not; some models refuse a tool that names one.
const RUST_FORMATS: [&str; 10] = [
    "int", "int8", "int16", "int128", "uint", "uint8", "uint16", "uint32", "uint64", "uint128",
];

/// The schema of a handler's arguments.
pub struct InputSchema {
    /// As it is listed.
    pub(crate) listed: Map<String, Value>,
    /// Whether it asks for more than reading the arguments into their type finds out.
    pub(crate) asks_more: bool,
}

impl InputSchema {
    /// A schema by hand: reading the arguments says nothing about it.
    pub(crate) fn by_hand(listed: Map<String, Value>) -> Self {
        let asks_more = beyond_types::asks_anything(&listed);
        Self { listed, asks_more }
    }
}

/// The schema of what a handler reads.
pub(crate) fn of_input<T: JsonSchema>() -> InputSchema {
    let schema = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>();
    InputSchema {
        asks_more: beyond_types::asks_more(schema.as_value()),
        listed: tidy(schema),
    }
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

fn drop_rust_format(schema: &mut Schema) {
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| RUST_FORMATS.contains(&format)) {
        schema.remove("format");
    }
}

/// Drops what a model pays for and does not need: the dialect is the default one, the title a Rust name.
fn tidy(mut schema: Schema) -> Map<String, Value> {
    RecursiveTransform(drop_rust_format).transform(&mut schema);
    let Value::Object(mut schema) = schema.into() else {
        return Map::new();
    };
    schema.remove("$schema");
    schema.remove("title");
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only described")]
    struct Order {
        count: u8,
        sizes: Vec<Option<usize>>,
        total: i64,
    }

    #[test]
    fn the_width_of_a_number_is_listed_only_as_json_schema_can_say_it() {
        let schema = of_input::<Order>().listed;

        assert_eq!(
            schema["properties"],
            json!({
                "count": { "type": "integer", "minimum": 0, "maximum": 255 },
                "sizes": { "type": "array", "items": { "type": ["integer", "null"], "minimum": 0 } },
                "total": { "type": "integer", "format": "int64" }
            })
        );
    }
}
