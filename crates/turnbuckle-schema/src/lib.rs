//! Validates values against JSON Schemas with bounded work.
//!
//! A schema may come from an untrusted peer: references are never fetched, patterns are matched in linear time, and a
//! schema that could cause unbounded work is rejected, or its validation is stopped. Error messages are written for a
//! model: each error has its path and the expected value, as far as they can be found at low cost. This crate does
//! not depend on tools.

mod complexity;
mod graph;
mod report;
mod step_budget;

use std::sync::Arc;

use complexity::Complexity;
use graph::SchemaGraph;
use jsonschema::{PatternOptions, ValidationError, error::ValidationErrorKind};
use report::ErrorReport;
use serde_json::{Map, Value};
use step_budget::StepBudget;

/// The maximum number of errors in one message.
const MAX_REPORTED_ERRORS: usize = 3;
/// The maximum memory of all compiled patterns of a schema, and of each pattern.
const MAX_ALL_PATTERN_BYTES: usize = 16 << 20;
const MAX_PATTERN_BYTES: usize = 2 << 20;
/// The maximum number of patterns that [`SchemaValidator::lenient`] skips.
const MAX_SKIPPED_PATTERNS: usize = 64;

/// Validates values against one schema. Cheap to clone.
///
/// A schema without `$schema` is read as JSON Schema 2020-12; older dialects back to draft 4 are supported if
/// `$schema` names them. Formats are asserted.
#[derive(Clone)]
pub struct SchemaValidator {
    compiled: Arc<CompiledSchema>,
}

struct CompiledSchema {
    schema: jsonschema::Validator,
    complexity: Complexity,
}

impl SchemaValidator {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// If the schema is invalid, refers to something outside of itself, has a pattern that cannot be matched in
    /// linear time, or is too complex. Nothing is ever fetched.
    pub fn new(schema: &Map<String, Value>) -> Result<Self, SchemaError> {
        let patterns = graph::measure(schema)?.patterns.max(1);
        let schema = Value::Object(schema.clone());
        let graph = SchemaGraph::new(&schema);
        let complexity = Complexity::analyze(&graph)?;
        let counting = complexity
            .is_exponential()
            .then(|| step_budget::with_step_counting(&schema, &graph));
        let size = MAX_PATTERN_BYTES.min(MAX_ALL_PATTERN_BYTES / patterns);
        let schema = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            // This engine matches untrusted input in linear time.
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(size)
                    .dfa_size_limit(size),
            )
            .with_keyword(step_budget::KEYWORD, |_, steps, _| {
                Ok(Box::new(StepBudget::new(steps)))
            })
            .build(counting.as_ref().unwrap_or(&schema))
            .map_err(|error| SchemaError::from(&error))?;
        Ok(Self {
            compiled: Arc::new(CompiledSchema { schema, complexity }),
        })
    }

    /// Compiles an untrusted schema and skips patterns that cannot be matched in linear time.
    ///
    /// # Errors
    ///
    /// As [`SchemaValidator::new`], except for such patterns.
    pub fn lenient(schema: &Map<String, Value>) -> Result<Self, SchemaError> {
        let mut outcome = Self::new(schema);
        if !matches!(outcome, Err(SchemaError::Invalid { .. })) {
            return outcome;
        }
        let mut schema = Value::Object(schema.clone());
        for _ in 0..MAX_SKIPPED_PATTERNS {
            let Err(SchemaError::Invalid { pointer, .. }) = &outcome else {
                break;
            };
            let holder = pointer.strip_suffix("/pattern");
            let holder = holder.and_then(|at| schema.pointer_mut(at)?.as_object_mut());
            let Some(Value::String(_)) = holder.and_then(|holder| holder.shift_remove("pattern"))
            else {
                break;
            };
            outcome = schema.as_object().map_or(outcome, Self::new);
        }
        outcome
    }

    /// Validates a value. The error lists the paths of invalid parts, starting with `name`.
    ///
    /// # Errors
    ///
    /// If the value does not match the schema, or if validation takes too long.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), SchemaMismatch> {
        let CompiledSchema { schema, complexity } = &*self.compiled;
        if !complexity.fits_stack(value) {
            return Err(SchemaMismatch::new(format!(
                "`{name}`: too deeply nested to be validated"
            )));
        }
        match step_budget::with_budget(|| schema.is_valid(value)) {
            Some(true) => Ok(()),
            Some(false) => Err(SchemaMismatch::new(self.report(name, value))),
            None => Err(SchemaMismatch::new(format!(
                "`{name}`: takes too long to be validated"
            ))),
        }
    }

    /// Describes the errors, within a limit on the work, because the value comes from a peer.
    #[cold]
    fn report(&self, name: &str, value: &Value) -> String {
        let CompiledSchema { schema, complexity } = &*self.compiled;
        let report = ErrorReport { name, value };
        if complexity.allows_all_errors(value) {
            report.list(schema.iter_errors(value).take(MAX_REPORTED_ERRORS))
        } else if complexity.allows_first_error() {
            report.list(schema.validate(value).err())
        } else {
            format!("`{name}`: does not match the schema")
        }
    }
}

/// The reason why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema refers to another document.
    #[error("unresolved reference, other documents are never fetched: {0}")]
    UnresolvedReference(String),
    /// The schema is invalid.
    #[error("at `{pointer}`: {reason}")]
    Invalid {
        /// The location of the error, as a JSON Pointer.
        pointer: String,
        /// The reason.
        reason: String,
    },
    /// The schema could cause too much work.
    #[error("the schema {0}")]
    TooComplex(&'static str),
}

impl From<&ValidationError<'_>> for SchemaError {
    fn from(error: &ValidationError<'_>) -> Self {
        match error.kind() {
            ValidationErrorKind::Referencing(error) => Self::UnresolvedReference(error.to_string()),
            _ => Self::Invalid {
                pointer: error.instance_path().to_string(),
                reason: error.masked().to_string(),
            },
        }
    }
}

/// The errors of a value that does not match a schema.
///
/// Written for a model: each error with its path and the expected value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaMismatch {
    message: String,
}

impl SchemaMismatch {
    pub(crate) fn new(message: String) -> Self {
        Self { message }
    }
}

impl From<SchemaMismatch> for String {
    fn from(mismatch: SchemaMismatch) -> Self {
        mismatch.message
    }
}

#[cfg(test)]
mod tests;
