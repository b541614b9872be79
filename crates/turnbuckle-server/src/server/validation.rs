//! Settings that enforce the schemas of tools, with any validator.

use super::Server;
use crate::{
    SchemaValidator,
    tools::{InvalidTool, schema::SchemaCompiler},
};

impl Server {
    /// Sets whether validators of type `V` check arguments against everything that the input schema of a tool says.
    ///
    /// Off by default. The feature `validation` has the same setting with a validator, `Server::validate_input`. Without
    /// it, the server depends on no implementation of JSON Schema. Either setting replaces the other.
    ///
    /// Types are always enforced, by deserialization; a tool with a schema that says no more is not validated. Settings
    /// of the server that serves a tool count, not those of a mounted server.
    ///
    /// # Panics
    ///
    /// If a tool was added before with an input schema that `V` cannot enforce. Such a tool added later panics too; see
    /// [`try_tool`](Self::try_tool).
    #[must_use]
    pub fn validate_input_with<V: SchemaValidator>(self, validate: bool) -> Self {
        self.try_validate_input_with::<V>(validate)
            .unwrap_or_else(|error| error.panic())
    }

    /// Like [`validate_input_with`](Self::validate_input_with), with an error instead of a panic.
    pub fn try_validate_input_with<V: SchemaValidator>(
        self,
        validate: bool,
    ) -> Result<Self, InvalidTool> {
        let compiler = validate.then(SchemaCompiler::new::<V>);
        self.set(|settings| settings.validate_input = compiler)
            .compile_schemas()
    }

    /// Sets whether validators of type `V` check the structured output of every tool against its output schema.
    ///
    /// Off by default. The feature `validation` has the same setting with a validator, `Server::validate_output`. Either
    /// setting replaces the other.
    ///
    /// A mismatch is a tool failure: it is logged, and the model gets the incident id.
    ///
    /// # Panics
    ///
    /// As [`validate_input_with`](Self::validate_input_with), for output schemas.
    #[must_use]
    pub fn validate_output_with<V: SchemaValidator>(self, validate: bool) -> Self {
        self.try_validate_output_with::<V>(validate)
            .unwrap_or_else(|error| error.panic())
    }

    /// Like [`validate_output_with`](Self::validate_output_with), with an error instead of a panic.
    pub fn try_validate_output_with<V: SchemaValidator>(
        self,
        validate: bool,
    ) -> Result<Self, InvalidTool> {
        let compiler = validate.then(SchemaCompiler::new::<V>);
        self.set(|settings| settings.validate_output = compiler)
            .compile_schemas()
    }

    /// Compiles the schemas of all tools that the server validates by.
    fn compile_schemas(self) -> Result<Self, InvalidTool> {
        for tool in self.catalog().tools.iter() {
            tool.compile_schemas(&self)?;
        }
        Ok(self)
    }
}
