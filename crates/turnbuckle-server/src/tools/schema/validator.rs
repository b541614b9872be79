//! Schema validation, with the feature `validation`. Without it nothing is checked.

use serde_json::{Map, Value};

#[cfg(feature = "validation")]
use crate::tools::arguments;

/// Validates values against one schema.
#[cfg(feature = "validation")]
#[derive(Clone)]
pub(crate) struct SchemaValidator(turnbuckle_schema::SchemaValidator);

#[cfg(feature = "validation")]
impl SchemaValidator {
    /// Compiles a schema.
    pub(crate) fn new(schema: &Map<String, Value>) -> Result<Option<Self>, String> {
        let validator =
            turnbuckle_schema::SchemaValidator::new(schema).map_err(|error| error.to_string())?;
        Ok(Some(Self(validator)))
    }

    /// Validates the arguments of a call. The error is for the model, like that of [`arguments::read`].
    pub(crate) fn check(&self, arguments: &str) -> Result<(), String> {
        let value = arguments::read::<Value>(arguments)?;
        self.check_value("arguments", &value)
            .map_err(|violations| format!("invalid arguments: {violations}"))
    }

    /// Validates a value. The error lists the invalid locations, starting with `name`.
    pub(crate) fn check_value(&self, name: &str, value: &Value) -> Result<(), String> {
        Ok(self.0.check(name, value)?)
    }
}

/// Uninhabited: nothing is checked, and the checks are compiled out.
#[cfg(not(feature = "validation"))]
#[derive(Clone)]
pub(crate) enum SchemaValidator {}

#[cfg(not(feature = "validation"))]
impl SchemaValidator {
    /// Always returns `None`.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the interface is that of `validate`"
    )]
    pub(crate) fn new(_schema: &Map<String, Value>) -> Result<Option<Self>, String> {
        Ok(None)
    }

    pub(crate) fn check(&self, _arguments: &str) -> Result<(), String> {
        match *self {}
    }

    pub(crate) fn check_value(&self, _name: &str, _value: &Value) -> Result<(), String> {
        match *self {}
    }
}
