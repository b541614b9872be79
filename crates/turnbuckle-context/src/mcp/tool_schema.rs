//! Validation of arguments and results against the schemas of tools.

use serde_json::{Map, Value};
use turnbuckle_schema::SchemaValidator;

/// The validator of `turnbuckle-schema`, without the feature `validation` of the server: cargo would turn the feature on
/// for every server that is built together with this crate.
pub(crate) struct ToolSchema(SchemaValidator);

impl turnbuckle_server::SchemaValidator for ToolSchema {
    fn compile(schema: &Map<String, Value>) -> Result<Self, String> {
        let validator = SchemaValidator::new(schema).map_err(|error| error.to_string())?;
        Ok(Self(validator))
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        Ok(self.0.check(name, value)?)
    }
}
