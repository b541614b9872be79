//! A schema as a graph of subschemas. The edges tell whether both apply to the same value.

use std::{collections::HashMap, ptr};

use serde_json::{Map, Value};

use crate::SchemaError;

/// The maximum number of JSON values in a schema.
const MAX_SCHEMA_PARTS: usize = 1 << 16;
/// The maximum depth of a schema; schemas in messages are less deep.
const MAX_SCHEMA_DEPTH: usize = 256;

/// The relation between a schema and a subschema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// Both apply to the same value.
    SameValue,
    /// The subschema applies to a part of the value to which no other subschema of this kind applies.
    OnePart,
    /// The subschema applies to parts of the value, in addition to others.
    AnyPart,
}

pub(super) struct SchemaEdge {
    pub(super) kind: EdgeKind,
    pub(super) to: usize,
}

#[derive(Default)]
pub(super) struct SchemaNode {
    pub(super) edges: Vec<SchemaEdge>,
    /// Set if the schema depends on the parts that adjacent schemas evaluated, which are evaluated again for that.
    pub(super) tracks_evaluated: bool,
    /// Set if the schema has a reference by name.
    has_named_reference: bool,
}

/// All schemas that are reachable from the root.
#[derive(Default)]
pub(super) struct SchemaGraph<'a> {
    pub(super) nodes: Vec<SchemaNode>,
    /// The number of references by name, which could not be resolved here.
    pub(super) named_references: usize,
    /// The number of references.
    pub(super) references: usize,
    /// Set if there are alternatives.
    pub(super) alternatives: bool,
    indices: HashMap<*const Map<String, Value>, usize>,
    open: Vec<(usize, &'a Map<String, Value>)>,
}

impl<'a> SchemaGraph<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let mut graph = Self::default();
        graph.add(root);
        while let Some((node, schema)) = graph.open.pop() {
            if node != 0 && (schema.contains_key("$id") || schema.contains_key("id")) {
                // Paths inside of it are relative to it, not to the root.
                graph.named_references += 1;
            }
            for (keyword, value) in schema {
                graph.connect(root, node, keyword, value);
            }
        }
        graph
    }

    /// Returns the number of steps that evaluating this object costs, or `None` for a schema without subschemas.
    pub(super) fn step_count(&self, object: &Map<String, Value>) -> Option<usize> {
        let node = *self.indices.get(&ptr::from_ref(object))?;
        let steps =
            self.nodes[node].edges.len() + usize::from(self.nodes[node].has_named_reference);
        (steps > 0).then_some(steps)
    }

    /// Returns the schemas so that each follows its subschemas along the edges that `counts` selects, or `None` if
    /// there is a cycle.
    pub(super) fn topological_order(
        &self,
        counts: impl Fn(EdgeKind) -> bool,
    ) -> Option<Vec<usize>> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut state = vec![VisitState::New; self.nodes.len()];
        // An explicit stack, because a peer controls the depth of references.
        let mut open = Vec::new();
        for start in 0..self.nodes.len() {
            open.push((start, 0));
            while let Some((node, next)) = open.pop() {
                match (state[node], next) {
                    (VisitState::Done, 0) => continue,
                    (VisitState::Open, 0) => return None,
                    _ => state[node] = VisitState::Open,
                }
                match self.nodes[node].edges.get(next) {
                    Some(edge) => {
                        open.push((node, next + 1));
                        if counts(edge.kind) {
                            open.push((edge.to, 0));
                        }
                    }
                    None => {
                        state[node] = VisitState::Done;
                        order.push(node);
                    }
                }
            }
        }
        Some(order)
    }

    fn connect(&mut self, root: &'a Value, node: usize, keyword: &str, value: &'a Value) {
        match (keyword, value) {
            ("$ref", Value::String(target)) => {
                self.references += 1;
                match target.strip_prefix('#').and_then(|at| root.pointer(at)) {
                    Some(target) => self.add_edge(node, EdgeKind::SameValue, target),
                    None => self.add_named_reference(node),
                }
            }
            ("$dynamicRef" | "$recursiveRef", _) => {
                self.references += 1;
                self.add_named_reference(node);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                self.alternatives |= keyword != "allOf";
                self.add_edges(node, EdgeKind::SameValue, schemas);
            }
            ("not" | "if" | "then" | "else", schema) => {
                self.add_edge(node, EdgeKind::SameValue, schema);
            }
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                self.add_edges(node, EdgeKind::SameValue, schemas.values());
            }
            ("properties", Value::Object(schemas)) => {
                self.add_edges(node, EdgeKind::OnePart, schemas.values());
            }
            ("prefixItems" | "items", Value::Array(schemas)) => {
                self.add_edges(node, EdgeKind::OnePart, schemas);
            }
            ("items" | "additionalItems" | "additionalProperties", schema) => {
                self.add_edge(node, EdgeKind::OnePart, schema);
            }
            ("patternProperties", Value::Object(schemas)) => {
                self.add_edges(node, EdgeKind::AnyPart, schemas.values());
            }
            ("contains" | "propertyNames" | "contentSchema", schema) => {
                self.add_edge(node, EdgeKind::AnyPart, schema);
            }
            ("unevaluatedItems" | "unevaluatedProperties", schema) => {
                self.nodes[node].tracks_evaluated = true;
                self.add_edge(node, EdgeKind::AnyPart, schema);
            }
            // Schemas that are referenced by name only are not reachable otherwise.
            ("$defs" | "definitions", Value::Object(schemas)) => {
                for schema in schemas.values() {
                    self.add(schema);
                }
            }
            _ => {}
        }
    }

    fn add_edges(
        &mut self,
        node: usize,
        kind: EdgeKind,
        schemas: impl IntoIterator<Item = &'a Value>,
    ) {
        for schema in schemas {
            self.add_edge(node, kind, schema);
        }
    }

    fn add_edge(&mut self, node: usize, kind: EdgeKind, schema: &'a Value) {
        if let Some(to) = self.add(schema) {
            self.nodes[node].edges.push(SchemaEdge { kind, to });
        }
    }

    fn add_named_reference(&mut self, node: usize) {
        self.named_references += 1;
        self.nodes[node].has_named_reference = true;
    }

    fn add(&mut self, schema: &'a Value) -> Option<usize> {
        let schema = schema.as_object()?;
        let next = self.nodes.len();
        let node = *self.indices.entry(ptr::from_ref(schema)).or_insert(next);
        if node == next {
            self.nodes.push(SchemaNode::default());
            self.open.push((node, schema));
        }
        Some(node)
    }
}

#[derive(Clone, Copy)]
enum VisitState {
    New,
    Open,
    Done,
}

/// The size of a schema.
#[derive(Default)]
pub(super) struct SchemaSize {
    parts: usize,
    pub(super) patterns: usize,
}

/// Measures a schema before it is processed any further.
pub(super) fn measure(schema: &Map<String, Value>) -> Result<SchemaSize, SchemaError> {
    let mut measure = SchemaSize::default();
    let mut open = Vec::new();
    measure.count_members(schema, 0, &mut open);
    while let Some((value, depth)) = open.pop() {
        measure.parts += 1;
        if measure.parts > MAX_SCHEMA_PARTS {
            return Err(SchemaError::TooComplex("is too large"));
        }
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooComplex("is too deep"));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => measure.count_members(members, depth, &mut open),
            _ => {}
        }
    }
    Ok(measure)
}

impl SchemaSize {
    fn count_members<'a>(
        &mut self,
        members: &'a Map<String, Value>,
        depth: usize,
        open: &mut Vec<(&'a Value, usize)>,
    ) {
        for (name, member) in members {
            self.patterns += match (name.as_str(), member) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(patterns)) => patterns.len(),
                _ => 0,
            };
            open.push((member, depth + 1));
        }
    }
}
