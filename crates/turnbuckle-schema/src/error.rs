//! Why a schema cannot be used, and why a value does not fit one.

use jsonschema::{ValidationError, error::ValidationErrorKind};

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It refers to something that is not in it.
    #[error("a schema must be complete, for none is ever fetched: {0}")]
    Incomplete(String),
    /// It is none.
    #[error("at `{place}`: {mistake}")]
    Invalid {
        /// Where the mistake is, as a JSON Pointer.
        place: String,
        /// What is wrong there.
        mistake: String,
    },
    /// It could take too much work.
    #[error("the schema {0}")]
    TooMuch(&'static str),
}

impl From<&ValidationError<'_>> for SchemaError {
    fn from(error: &ValidationError<'_>) -> Self {
        match error.kind() {
            ValidationErrorKind::Referencing(error) => Self::Incomplete(error.to_string()),
            _ => Self::Invalid {
                place: error.instance_path().to_string(),
                mistake: error.masked().to_string(),
            },
        }
    }
}

/// Why a value does not fit a schema.
///
/// Written for a model: each mistake with its path and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{mistakes}")]
pub struct Mismatch {
    mistakes: String,
}

impl Mismatch {
    pub(crate) fn new(mistakes: String) -> Self {
        Self { mistakes }
    }
}

impl From<Mismatch> for String {
    fn from(mismatch: Mismatch) -> Self {
        mismatch.mistakes
    }
}
