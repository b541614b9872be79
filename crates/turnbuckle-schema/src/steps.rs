//! Counting the steps of a check, and ending it when there were too many.
//!
//! The validator has no such limit, but it takes keywords of ours. Every schema that leads to others gets one more
//! `allOf` entry with such a keyword, which nothing fits any more once the steps are used up. As the validator tries
//! `allOf` before alternatives and references, all that is left then fails at once.

use std::cell::Cell;

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

use crate::graph::Graph;

/// As good as certainly nobody else's.
pub(super) const KEYWORD: &str = "turnbuckle:steps";

/// How many schemas may be tried for one value: a fraction of a second.
const STEPS: u64 = 1 << 22;

thread_local! {
    /// What is left for the check that runs on this thread, if one does.
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Runs a check; none if it took too many steps.
pub(super) fn limited<T>(check: impl FnOnce() -> T) -> Option<T> {
    let before = LEFT.replace(STEPS);
    let outcome = check();
    let left = LEFT.replace(before);
    (left > 0).then_some(outcome)
}

/// The same schema, counting its steps.
pub(super) fn counted(value: &Value, graph: &Graph<'_>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| counted(item, graph)).collect(),
        Value::Object(members) => {
            let mut copy: Map<_, _> = members
                .iter()
                .map(|(name, value)| (name.clone(), counted(value, graph)))
                .collect();
            if let Some(steps) = graph.steps(members)
                && let Value::Array(all) = copy.entry("allOf").or_insert_with(|| json!([]))
            {
                // The last, so that the paths in references lead where they did.
                all.push(json!({ KEYWORD: steps }));
            }
            Value::Object(copy)
        }
        other => other.clone(),
    }
}

/// What our keyword means: so many steps.
pub(super) struct CountSteps(u64);

impl CountSteps {
    pub(super) fn new(steps: &Value) -> Self {
        Self(steps.as_u64().unwrap_or(1))
    }
}

impl<'i> Keyword<'i> for CountSteps {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(value) {
            Ok(())
        } else {
            Err(ValidationError::custom("too many steps"))
        }
    }

    fn is_valid(&self, _value: &'i Value) -> bool {
        LEFT.set(LEFT.get().saturating_sub(self.0));
        LEFT.get() > 0
    }
}
