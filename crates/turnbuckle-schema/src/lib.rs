//! Checks values against JSON Schemas, with bounded effort.
//!
//! A schema may be anyone's: nothing that it refers to is ever fetched, its patterns are matched in linear time, and
//! one that could keep us busy for ever is refused, or its checks are ended in time. What is wrong with a value is said in
//! words that a model can act on, each mistake with its path, as far as finding it out stays cheap. Knows nothing of
//! tools.

mod effort;
mod error;
mod explain;
mod graph;
mod steps;

use std::sync::Arc;

use jsonschema::PatternOptions;
use serde_json::{Map, Value};

pub use error::{Mismatch, SchemaError};

use effort::Effort;
use explain::Explanation;
use graph::Graph;
use steps::CountSteps;

/// At most so many mistakes are named at once.
const NAMED: usize = 3;
/// What the compiled patterns of a schema may take together, in bytes, and each of them.
const PATTERNS: usize = 16 << 20;
const PATTERN: usize = 2 << 20;
/// At most so many patterns are passed over.
const PASSED_OVER: usize = 64;

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
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// If it is none, refers to something outside itself, has a pattern that cannot be matched in linear time, or could
    /// take too much work. Nothing is ever fetched.
    pub fn new(schema: &Map<String, Value>) -> Result<Self, SchemaError> {
        let patterns = graph::measure(schema)?.patterns.max(1);
        let schema = Value::Object(schema.clone());
        let graph = Graph::of(&schema);
        let effort = Effort::of(&graph)?;
        let counted = effort
            .can_explode()
            .then(|| steps::counted(&schema, &graph));
        let size = PATTERN.min(PATTERNS / patterns);
        let schema = jsonschema::options()
            .offline()
            .should_validate_formats(true)
            // Patterns meet what a peer sends: this engine takes linear time, whatever it is.
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(size)
                    .dfa_size_limit(size),
            )
            .with_keyword(steps::KEYWORD, |_, steps, _| {
                Ok(Box::new(CountSteps::new(steps)))
            })
            .build(counted.as_ref().unwrap_or(&schema))
            .map_err(|error| SchemaError::from(&error))?;
        Ok(Self {
            compiled: Arc::new(Compiled { schema, effort }),
        })
    }

    /// Compiles a schema of a stranger: patterns that cannot be matched in linear time are passed over.
    ///
    /// # Errors
    ///
    /// As [`Validator::new`], but for such patterns.
    pub fn lenient(schema: &Map<String, Value>) -> Result<Self, SchemaError> {
        let mut outcome = Self::new(schema);
        if !matches!(outcome, Err(SchemaError::Invalid { .. })) {
            return outcome;
        }
        let mut schema = Value::Object(schema.clone());
        for _ in 0..PASSED_OVER {
            let Err(SchemaError::Invalid { place, .. }) = &outcome else {
                break;
            };
            let holder = place.strip_suffix("/pattern");
            let holder = holder.and_then(|at| schema.pointer_mut(at)?.as_object_mut());
            let Some(Value::String(_)) = holder.and_then(|holder| holder.shift_remove("pattern"))
            else {
                break;
            };
            outcome = schema.as_object().map_or(outcome, Self::new);
        }
        outcome
    }

    /// Checks a value; the error names the places that are wrong, beginning with `name`.
    ///
    /// # Errors
    ///
    /// If the value does not fit, or if it would take too long to find that out.
    pub fn check(&self, name: &str, value: &Value) -> Result<(), Mismatch> {
        let Compiled { schema, effort } = &*self.compiled;
        if !effort.has_room_for(value) {
            return Err(Mismatch::new(format!("`{name}`: too deep to be checked")));
        }
        match steps::limited(|| schema.is_valid(value)) {
            Some(true) => Ok(()),
            Some(false) => Err(Mismatch::new(self.explain(name, value))),
            None => Err(Mismatch::new(format!(
                "`{name}`: takes too long to be checked"
            ))),
        }
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
