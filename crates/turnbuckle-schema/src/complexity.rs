//! The worst-case cost of validating with a schema.
//!
//! Schemas and values come from untrusted peers. Nested alternatives, references that fan out, and recursive schemas
//! can keep a validator busy for a very long time or exhaust its stack with a few lines. This module computes an
//! upper bound before a schema is used.

use serde_json::Value;

use crate::{
    SchemaError,
    graph::{EdgeKind, SchemaGraph, SchemaNode},
};

/// The maximum number of references if any of them is resolved by name.
const MAX_NAMED_REFERENCES: usize = 16;
/// The maximum number of nested schema evaluations; each uses stack space.
const MAX_NESTED_SCHEMAS: u32 = 2048;
/// The maximum depth of a message.
const MAX_MESSAGE_DEPTH: u32 = 128;
/// The maximum number of schemas per part of a value for which steps are not counted.
const MAX_UNCOUNTED_SCHEMAS: u64 = 32;
/// The maximum number of schema evaluations for an error report.
const MAX_REPORTING_STEPS: u64 = 1 << 17;
/// The maximum number of parts of a value for which more than one error is reported.
const MAX_REPORTED_PARTS: usize = 4096;

/// The worst-case cost of one schema.
pub(super) struct Complexity {
    /// The maximum number of nested schemas that apply to the same value.
    nested: u32,
    /// The number of schemas that apply to the same value, not counting those for its parts.
    same_value: u64,
    /// The number of schemas for parts that can apply to the same part.
    fan_out: u64,
    /// The number of schemas that apply to any part of a value, or `None` if it grows with the depth of the value.
    per_part: Option<u64>,
    /// Set if there are alternatives; the errors of all of them are collected.
    alternatives: bool,
}

impl Complexity {
    /// Computes the cost of a schema, or rejects it.
    pub(super) fn analyze(graph: &SchemaGraph<'_>) -> Result<Self, SchemaError> {
        let Some(order) = graph.topological_order(|kind| kind == EdgeKind::SameValue) else {
            return Err(SchemaError::TooComplex(
                "refers to itself for the same value",
            ));
        };
        let mut complexity = Self::for_same_value(graph, &order);
        if graph.named_references > 0 {
            complexity.assume_named_references(graph)?;
        }
        if complexity.nested > MAX_NESTED_SCHEMAS {
            return Err(SchemaError::TooComplex("is too deep"));
        }
        Ok(complexity)
    }

    /// Returns whether steps have to be counted during validation.
    pub(super) fn is_exponential(&self) -> bool {
        self.per_part
            .is_none_or(|per_part| per_part > MAX_UNCOUNTED_SCHEMAS)
    }

    /// Returns whether the stack is large enough for a value.
    pub(super) fn fits_stack(&self, value: &Value) -> bool {
        self.nested <= MAX_NESTED_SCHEMAS / MAX_MESSAGE_DEPTH
            || depth(value, &mut { usize::MAX })
                .is_some_and(|depth| self.nested.saturating_mul(depth + 1) <= MAX_NESTED_SCHEMAS)
    }

    /// Returns whether all errors of a value may be collected.
    pub(super) fn allows_all_errors(&self, value: &Value) -> bool {
        let mut left = MAX_REPORTED_PARTS;
        let Some(depth) = depth(value, &mut left) else {
            return false;
        };
        let by_depth = self
            .same_value
            .saturating_mul(self.fan_out.saturating_pow(depth));
        let per_part = self
            .per_part
            .map_or(by_depth, |per_part| per_part.min(by_depth));
        per_part.saturating_mul((MAX_REPORTED_PARTS - left) as u64) <= MAX_REPORTING_STEPS
    }

    /// Returns whether the first error may be searched for in a value of any size.
    pub(super) fn allows_first_error(&self) -> bool {
        let is_linear = self.fan_out == 1 && self.same_value <= MAX_UNCOUNTED_SCHEMAS;
        !self.alternatives && (is_linear || !self.is_exponential())
    }

    /// Adds up the schemas that apply to the same value. This terminates, because the graph has no such cycle.
    fn for_same_value(graph: &SchemaGraph<'_>, order: &[usize]) -> Self {
        let mut all = Self {
            nested: 1,
            same_value: 1,
            fan_out: 1,
            per_part: per_part(graph),
            alternatives: graph.alternatives,
        };
        let mut counted = vec![(0_u32, 0_u64, 0_u64); graph.nodes.len()];
        for &at in order {
            let node = &graph.nodes[at];
            let (mut nested, mut same_value, mut fan_out) =
                (1, 1, u64::from(node.has(EdgeKind::OnePart)));
            for edge in &node.edges {
                let inner = counted[edge.to];
                match edge.kind {
                    EdgeKind::SameValue => {
                        nested = nested.max(inner.0.saturating_add(1));
                        same_value = inner.1.saturating_add(same_value);
                        fan_out = inner.2.saturating_add(fan_out);
                    }
                    EdgeKind::AnyPart => fan_out = fan_out.saturating_add(1),
                    EdgeKind::OnePart => {}
                }
            }
            (same_value, fan_out) = (
                node.with_reevaluation(same_value),
                node.with_reevaluation(fan_out),
            );
            counted[at] = (nested, same_value, fan_out);
            all.nested = all.nested.max(nested);
            all.same_value = all.same_value.max(same_value);
            all.fan_out = all.fan_out.max(fan_out);
        }
        all
    }

    /// Assumes that each reference by name may resolve to any schema, because only the validator can resolve it.
    fn assume_named_references(&mut self, graph: &SchemaGraph<'_>) -> Result<(), SchemaError> {
        if graph.references > MAX_NAMED_REFERENCES {
            return Err(SchemaError::TooComplex("has too many references by name"));
        }
        for _ in 0..graph.references {
            self.same_value = self.same_value.saturating_mul(2);
            self.fan_out = self.fan_out.saturating_mul(2);
        }
        let references = u32::try_from(graph.references).unwrap_or(u32::MAX);
        self.nested = self.nested.saturating_mul(references.saturating_add(1));
        self.per_part = None;
        Ok(())
    }
}

/// Returns how many schemas apply to any part of a value, or `None` for a recursive schema, where it grows with the
/// value.
fn per_part(graph: &SchemaGraph<'_>) -> Option<u64> {
    let mut per_part = vec![0_u64; graph.nodes.len()];
    for at in graph.topological_order(|_| true)? {
        let node = &graph.nodes[at];
        let (mut sum, mut max) = (1_u64, 0);
        for edge in &node.edges {
            match edge.kind {
                EdgeKind::SameValue | EdgeKind::AnyPart => {
                    sum = sum.saturating_add(per_part[edge.to]);
                }
                EdgeKind::OnePart => max = per_part[edge.to].max(max),
            }
        }
        per_part[at] = node.with_reevaluation(sum.saturating_add(max));
    }
    per_part.first().copied()
}

impl SchemaNode {
    fn has(&self, kind: EdgeKind) -> bool {
        self.edges.iter().any(|edge| edge.kind == kind)
    }

    /// Triples the count for `unevaluated*`: once to validate, once to find the evaluated parts, once for nested
    /// ones.
    fn with_reevaluation(&self, count: u64) -> u64 {
        if self.tracks_evaluated {
            count.saturating_mul(3)
        } else {
            count
        }
    }
}

/// Returns the depth of a value, or `None` if it has more than `left` parts.
fn depth(value: &Value, left: &mut usize) -> Option<u32> {
    *left = left.checked_sub(1)?;
    let mut deepest = 0;
    match value {
        Value::Array(items) => {
            for item in items {
                deepest = deepest.max(depth(item, left)? + 1);
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                deepest = deepest.max(depth(member, left)? + 1);
            }
        }
        _ => {}
    }
    Some(deepest)
}
