//! The reasons that a tool cannot be built.

/// The reason that a tool cannot be built, or cannot be added to a server that validates schemas.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTool {
    /// The name is empty, too long or has other characters.
    #[error(
        "`{name}` is not a valid tool name: expected 1 to 128 letters, digits, `_`, `-` or `.`"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A schema is not a JSON object.
    #[error("the {which} schema must be a JSON object")]
    SchemaNotAnObject {
        /// `input` or `output`.
        which: &'static str,
    },
    /// The arguments are not an object.
    #[error("the arguments of `{tool}` must have an object schema, not type {found}")]
    ArgumentsNotAnObject {
        /// The name of the tool.
        tool: String,
        /// The type in the schema, as JSON.
        found: String,
    },
    /// The input schema has an invalid `x-mcp-header`.
    #[error("the input schema of `{tool}` has an invalid `x-mcp-header`: {reason}")]
    ParamHeader {
        /// The name of the tool.
        tool: String,
        /// The problem.
        reason: String,
    },
    /// The server validates by this schema, but the schema cannot be enforced: it is invalid, refers to an external
    /// schema, has a pattern that cannot be matched in linear time, or is infinitely recursive.
    #[error("the {which} schema of `{tool}` cannot be enforced: {reason}")]
    Schema {
        /// `input` or `output`.
        which: &'static str,
        /// The name of the tool.
        tool: String,
        /// The problem.
        reason: String,
    },
}

impl InvalidTool {
    /// Panics with the message, for the constructors that are meant for constant values.
    pub(crate) fn panic(self) -> ! {
        panic!("{self}")
    }
}
