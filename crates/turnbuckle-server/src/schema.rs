//! JSON Schemas of Rust types, as tools list them.

use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Map, Value};

/// The schema of what a handler reads.
pub(crate) fn of_input<T: JsonSchema>() -> Map<String, Value> {
    of::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of what a handler returns.
pub(crate) fn of_output<T: JsonSchema>() -> Map<String, Value> {
    of::<T>(SchemaSettings::draft2020_12().for_serialize())
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

/// Leaves out what a model pays for and does not need: the dialect is the default one, the title a Rust name.
fn of<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with_transform(RecursiveTransform(forget_width));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let Value::Object(mut schema) = schema.into() else {
        return Map::new();
    };
    schema.remove("$schema");
    schema.remove("title");
    schema
}

/// Drops formats such as `uint64`: they are Rust's, and validators of other languages complain about them. The limits
/// of a number are in `minimum` and `maximum`.
fn forget_width(schema: &mut Schema) {
    let width = |format: &str| {
        let bits = format.trim_start_matches('u').strip_prefix("int");
        matches!(format, "float" | "double")
            || bits.is_some_and(|bits| bits.chars().all(|digit| digit.is_ascii_digit()))
    };
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(width)
    {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Numbers {
        small: u8,
        size: usize,
        whole: i64,
        real: f64,
        many: Vec<Option<u32>>,
        #[schemars(extend("format" = "date-time"))]
        when: String,
    }

    #[test]
    fn numbers_have_limits_and_no_width() {
        let schema = of_input::<Numbers>();
        let properties = &schema["properties"];
        assert_eq!(
            properties["small"],
            json!({ "type": "integer", "minimum": 0, "maximum": 255 })
        );
        assert_eq!(
            properties["size"],
            json!({ "type": "integer", "minimum": 0 })
        );
        assert_eq!(properties["whole"], json!({ "type": "integer" }));
        assert_eq!(properties["real"], json!({ "type": "number" }));
        assert_eq!(properties["many"]["items"]["format"], Value::Null);
        assert_eq!(properties["when"]["format"], "date-time");
    }
}
