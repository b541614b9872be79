//! Settings that enforce the schemas of tools, with the validator of `turnbuckle-schema`.

use serde_json::{Map, Value};
use turnbuckle_schema::SchemaValidator as BoundedValidator;

use super::Server;
use crate::{SchemaValidator, tools::InvalidTool};

impl Server {
    /// Sets whether arguments are validated against everything that the input schema of a tool says. Off by default.
    ///
    /// Types are always enforced, by deserialization. This adds ranges, lengths, patterns, formats, and the schemas of
    /// [`Tool::raw`](crate::Tool::raw). For invalid arguments the model gets a result with the location and the expected
    /// value.
    ///
    /// Settings of the server that serves a tool count, not those of a mounted server.
    ///
    /// ```
    /// use turnbuckle_server::Server;
    ///
    /// let server = Server::new("trips", "1.0.0").validate_input(true);
    /// ```
    ///
    /// # Panics
    ///
    /// If a tool was added before with an input schema that is invalid, refers to an external schema, has a pattern that
    /// cannot be matched in linear time (with look-around or back-references), or is infinitely recursive. Such a tool
    /// added later panics too; see [`try_tool`](Self::try_tool).
    #[must_use]
    pub fn validate_input(self, validate: bool) -> Self {
        self.validate_input_with::<BoundedValidator>(validate)
    }

    /// Like [`validate_input`](Self::validate_input), with an error instead of a panic.
    pub fn try_validate_input(self, validate: bool) -> Result<Self, InvalidTool> {
        self.try_validate_input_with::<BoundedValidator>(validate)
    }

    /// Sets whether the structured output of every tool is validated against its output schema. Off by default.
    ///
    /// A mismatch is a tool failure: it is logged, and the model gets the incident id. During development,
    /// `validate_output(cfg!(debug_assertions))` finds such mistakes at no cost for release builds.
    ///
    /// # Panics
    ///
    /// As [`validate_input`](Self::validate_input), for output schemas.
    #[must_use]
    pub fn validate_output(self, validate: bool) -> Self {
        self.validate_output_with::<BoundedValidator>(validate)
    }

    /// Like [`validate_output`](Self::validate_output), with an error instead of a panic.
    pub fn try_validate_output(self, validate: bool) -> Result<Self, InvalidTool> {
        self.try_validate_output_with::<BoundedValidator>(validate)
    }
}

impl SchemaValidator for BoundedValidator {
    fn compile(schema: &Map<String, Value>) -> Result<Self, String> {
        Self::new(schema).map_err(|error| error.to_string())
    }

    fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        Ok(Self::check(self, name, value)?)
    }
}
