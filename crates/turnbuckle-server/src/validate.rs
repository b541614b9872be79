//! JSON Schemas enforced: compiled once, when a tool is built.

use serde_json::{Map, Value};

use crate::arguments;

/// Checks values against one schema.
#[derive(Clone)]
pub(crate) struct Validator(turnbuckle_schema::Validator);

impl Validator {
    /// Compiles a schema; the error says what is wrong with it.
    pub(crate) fn new(schema: &Map<String, Value>) -> Result<Option<Self>, String> {
        let validator =
            turnbuckle_schema::Validator::new(schema).map_err(|error| error.to_string())?;
        Ok(Some(Self(validator)))
    }

    /// Checks the arguments of a call; the error is for the model, in the words of [`arguments::read`].
    pub(crate) fn check(&self, arguments: &str) -> Result<(), String> {
        let value = arguments::read::<Value>(arguments)?;
        self.check_value("arguments", &value)
            .map_err(|mistakes| format!("invalid arguments: {mistakes}"))
    }

    /// Checks a value; the error names the places that are wrong, beginning with `name`.
    pub(crate) fn check_value(&self, name: &str, value: &Value) -> Result<(), String> {
        Ok(self.0.check(name, value)?)
    }
}
