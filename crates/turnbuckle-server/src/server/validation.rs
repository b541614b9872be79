//! Settings that enforce the schemas of tools.

use super::Server;
use crate::tools::InvalidTool;

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
        self.try_validate_input(validate)
            .unwrap_or_else(|error| error.panic())
    }

    /// Like [`validate_input`](Self::validate_input), with an error instead of a panic.
    pub fn try_validate_input(self, validate: bool) -> Result<Self, InvalidTool> {
        self.set(|settings| settings.validate_input = validate)
            .compile_schemas()
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
        self.try_validate_output(validate)
            .unwrap_or_else(|error| error.panic())
    }

    /// Like [`validate_output`](Self::validate_output), with an error instead of a panic.
    pub fn try_validate_output(self, validate: bool) -> Result<Self, InvalidTool> {
        self.set(|settings| settings.validate_output = validate)
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
