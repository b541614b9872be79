//! Checks values against JSON Schemas, with bounded effort.
//!
//! A schema is compiled once and may be anyone's: nothing that it refers to is ever fetched, and its patterns are
//! matched in linear time. What is wrong with a value is said in words that a model can act on, each mistake with its
//! path, as far as finding it out stays cheap. Knows nothing of tools.

mod effort;
mod explain;

use std::sync::Arc;

use jsonschema::{PatternOptions, error::ValidationErrorKind};
use serde_json::{Map, Value};

use effort::Effort;
use explain::Explanation;

/// At most so many mistakes are named at once.
const NAMED: usize = 3;

/// Checks values against one schema; cheap to clone.
///
/// A schema that names no dialect is read as JSON Schema 2020-12; the older dialects back to draft 4 are spoken where
/// `$schema` names them. Formats are asserted.
#[derive(Clone)]
pub struct Validator {
    compiled: Arc<Compiled>,
}

struct Compiled {
    schema: jsonschema::Validator,
    effort: Effort,
}

impl Validator {
    /// Compiles a schema; the error says what is wrong with it. Nothing is ever fetched.
    pub fn new(schema: &Map<String, Value>) -> Result<Self, String> {
        let schema = Value::Object(schema.clone());
        let effort = Effort::of(&schema);
        let schema = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            // Patterns meet what a peer sends: this engine takes linear time, whatever it is.
            .with_pattern_options(PatternOptions::regex())
            .build(&schema)
            .map_err(|error| match error.kind() {
                ValidationErrorKind::Referencing(error) => {
                    format!("a schema must be complete, for none is ever fetched: {error}")
                }
                _ => format!("at `{}`: {}", error.instance_path(), error.masked()),
            })?;
        Ok(Self {
            compiled: Arc::new(Compiled { schema, effort }),
        })
    }

    /// Checks a value; the error names the places that are wrong, beginning with `name`.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), String> {
        if self.compiled.schema.is_valid(value) {
            return Ok(());
        }
        Err(self.explain(name, value))
    }

    /// Says what is wrong, as far as finding it out stays cheap: that depends on what a peer has sent.
    #[cold]
    fn explain(&self, name: &str, value: &Value) -> String {
        let Compiled { schema, effort } = &*self.compiled;
        let explanation = Explanation { name, value };
        if effort.allows_all(value) {
            explanation.list(schema.iter_errors(value).take(NAMED))
        } else if effort.allows_first() {
            explanation.list(schema.validate(value).err())
        } else {
            format!("`{name}`: does not fit the schema")
        }
    }
}

#[cfg(test)]
mod tests;
