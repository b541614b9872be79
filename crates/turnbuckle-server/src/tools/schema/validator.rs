//! Validation of values against schemas, with the feature `validation`.

#[cfg(not(feature = "validation"))]
pub(crate) use disabled::SchemaValidator;
#[cfg(feature = "validation")]
pub(crate) use enabled::SchemaValidator;

#[cfg(feature = "validation")]
mod enabled {
    use serde_json::{Map, Value};

    use crate::tools::arguments;

    /// Validates values against one schema.
    #[derive(Clone)]
    pub(crate) struct SchemaValidator(turnbuckle_schema::SchemaValidator);

    impl SchemaValidator {
        /// Compiles a schema.
        pub(crate) fn new(schema: &Map<String, Value>) -> Result<Self, String> {
            turnbuckle_schema::SchemaValidator::new(schema)
                .map(Self)
                .map_err(|error| error.to_string())
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
}

/// Without the feature a server cannot be told to validate, so nothing here is called.
#[cfg(not(feature = "validation"))]
mod disabled {
    use serde_json::{Map, Value};

    /// Without values, because schemas cannot be compiled.
    #[derive(Clone)]
    pub(crate) enum SchemaValidator {}

    impl SchemaValidator {
        pub(crate) fn new(_schema: &Map<String, Value>) -> Result<Self, String> {
            Err("the feature `validation` is off".to_owned())
        }

        pub(crate) fn check(&self, _arguments: &str) -> Result<(), String> {
            match *self {}
        }

        pub(crate) fn check_value(&self, _name: &str, _value: &Value) -> Result<(), String> {
            match *self {}
        }
    }
}
