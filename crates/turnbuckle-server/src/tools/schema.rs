//! JSON Schemas of Rust types, for tool definitions.

mod needs_validation;
mod validator;

use schemars::{
    JsonSchema, Schema,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value};
pub use validator::SchemaValidator;
pub(crate) use validator::{CompiledSchema, SchemaCompiler};

/// Formats of Rust types that JSON Schema does not define. Some models reject tools that use them.
const RUST_FORMATS: [&str; 10] = [
    "int", "int8", "int16", "int128", "uint", "uint8", "uint16", "uint32", "uint64", "uint128",
];

/// The schema of a handler's arguments.
pub struct InputSchema {
    /// The schema in the tool definition.
    pub(crate) listed: Map<String, Value>,
    /// True if deserializing the arguments does not check everything the schema requires.
    pub(crate) needs_validation: bool,
}

impl InputSchema {
    /// Creates a schema from JSON, which deserialization does not check.
    pub(crate) fn from_value(listed: Map<String, Value>) -> Self {
        let needs_validation = needs_validation::constrains_members(&listed);
        Self {
            listed,
            needs_validation,
        }
    }
}

/// Generates the schema of a handler's arguments.
pub(crate) fn input_schema_for<T: JsonSchema>() -> InputSchema {
    let schema = SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<T>();
    InputSchema {
        needs_validation: needs_validation::needs_validation(schema.as_value()),
        listed: normalize(schema),
    }
}

/// Generates the schema of a handler's result.
pub(crate) fn output_schema_for<T: JsonSchema>() -> Map<String, Value> {
    normalize(
        SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator()
            .into_root_schema_for::<T>(),
    )
}

/// Ensures `"type": "object"` at the root, as every revision requires for input schemas. Returns the type of a schema
/// that describes something else.
pub(crate) fn require_object(schema: &mut Map<String, Value>) -> Result<(), String> {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => Ok(()),
        None => {
            schema.insert("type".into(), "object".into());
            Ok(())
        }
        Some(other) => Err(other.to_string()),
    }
}

fn drop_rust_format(schema: &mut Schema) {
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| RUST_FORMATS.contains(&format)) {
        schema.remove("format");
    }
}

/// Removes what costs tokens and adds nothing: the default dialect and the title, which is a Rust name.
fn normalize(mut schema: Schema) -> Map<String, Value> {
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
        let schema = input_schema_for::<Order>().listed;

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
