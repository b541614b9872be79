//! Limits the number of steps of a validation.
//!
//! The validator has no such limit but accepts custom keywords. Every schema with subschemas gets an additional
//! `allOf` entry with a custom keyword that fails once the budget is used up. The validator evaluates `allOf` before
//! alternatives and references, so the remaining evaluations fail quickly.

use std::cell::Cell;

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use crate::graph::SchemaGraph;

/// The custom keyword, with a prefix that avoids collisions.
pub(super) const KEYWORD: &str = "turnbuckle:steps";

/// The maximum number of schema evaluations for one value: a fraction of a second.
const MAX_STEPS: u64 = 1 << 22;

thread_local! {
    /// The remaining steps of the validation that runs on this thread, if any.
    static REMAINING_STEPS: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs a validation. Returns `None` if it took too many steps.
pub(super) fn with_budget<T>(check: impl FnOnce() -> T) -> Option<T> {
    let before = REMAINING_STEPS.replace(MAX_STEPS);
    let outcome = check();
    let remaining = REMAINING_STEPS.replace(before);
    (remaining > 0).then_some(outcome)
}

/// Returns a copy of the schema that counts its steps.
pub(super) fn with_step_counting(value: &Value, graph: &SchemaGraph<'_>) -> Value {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| with_step_counting(item, graph))
            .collect(),
        Value::Object(members) => {
            let mut copy: Map<_, _> = members
                .iter()
                .map(|(name, value)| (name.clone(), with_step_counting(value, graph)))
                .collect();
            if let Some(steps) = graph.step_count(members)
                && let Value::Array(all) = copy.entry("allOf").or_insert_with(|| json!([]))
            {
                // Appended last, so that JSON Pointers in references stay valid.
                all.push(json!({ KEYWORD: steps }));
            }
            Value::Object(copy)
        }
        other => other.clone(),
    }
}

/// The custom keyword, which consumes this number of steps.
pub(super) struct StepBudget(u64);

impl StepBudget {
    pub(super) fn new(steps: &Value) -> Self {
        Self(steps.as_u64().unwrap_or(1))
    }
}

impl<'i> Keyword<'i> for StepBudget {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            Ok(())
        } else {
            Err(ValidationError::custom("too many steps"))
        }
    }

    fn is_valid(&self, _value: &'i Value) -> bool {
        REMAINING_STEPS.set(REMAINING_STEPS.get().saturating_sub(self.0));
        REMAINING_STEPS.get() > 0
    }
}
