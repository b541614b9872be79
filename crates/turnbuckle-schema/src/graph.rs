//! A schema as a graph: which of its schemas lead to which, and whether they stay at the same place of the value.

use std::{collections::HashMap, ptr};

use serde_json::{Map, Value};

use crate::SchemaError;

/// A schema may have so many parts, every JSON value in it counted.
const PARTS: usize = 1 << 16;
/// A schema may be so deep; what arrives in a message is less.
const DEPTH: usize = 256;

/// How one schema leads to another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Both apply to the same value.
    Stay,
    /// The second applies to a part of the value, and no other of this kind does.
    Part,
    /// The second applies to parts of the value, beside all others.
    AlsoPart,
}

pub(super) struct Edge {
    pub(super) step: Step,
    pub(super) to: usize,
}

#[derive(Default)]
pub(super) struct Node {
    pub(super) edges: Vec<Edge>,
    /// Whether it asks what the schemas beside it have looked at, which are tried again for that.
    pub(super) looks_again: bool,
    /// Whether it leads somewhere by a name.
    leads_by_name: bool,
}

/// All schemas that the first one leads to.
#[derive(Default)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node>,
    /// How many references could not be followed, as they lead by names and not by paths.
    pub(super) by_name: usize,
    /// How many references there are.
    pub(super) references: usize,
    /// Whether there are any alternatives.
    pub(super) alternatives: bool,
    known: HashMap<*const Map<String, Value>, usize>,
    open: Vec<(usize, &'a Map<String, Value>)>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut graph = Self::default();
        graph.add(root);
        while let Some((node, schema)) = graph.open.pop() {
            if node != 0 && (schema.contains_key("$id") || schema.contains_key("id")) {
                // Paths inside it begin at it, and not at the root.
                graph.by_name += 1;
            }
            for (keyword, value) in schema {
                graph.connect(root, node, keyword, value);
            }
        }
        graph
    }

    /// How many steps it takes to try this very object, if it is a schema that leads anywhere.
    pub(super) fn steps(&self, object: &Map<String, Value>) -> Option<usize> {
        let node = *self.known.get(&ptr::from_ref(object))?;
        let steps = self.nodes[node].edges.len() + usize::from(self.nodes[node].leads_by_name);
        (steps > 0).then_some(steps)
    }

    /// Every schema, each after all that it leads to by steps as `counts` says; none if there is a circle.
    pub(super) fn order(&self, counts: impl Fn(Step) -> bool) -> Option<Vec<usize>> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut state = vec![State::New; self.nodes.len()];
        // A stack of our own, since a peer decides how far references lead.
        let mut open = Vec::new();
        for start in 0..self.nodes.len() {
            open.push((start, 0));
            while let Some((node, next)) = open.pop() {
                match (state[node], next) {
                    (State::Done, 0) => continue,
                    (State::Open, 0) => return None,
                    _ => state[node] = State::Open,
                }
                match self.nodes[node].edges.get(next) {
                    Some(edge) => {
                        open.push((node, next + 1));
                        if counts(edge.step) {
                            open.push((edge.to, 0));
                        }
                    }
                    None => {
                        state[node] = State::Done;
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
                    Some(target) => self.lead(node, Step::Stay, target),
                    None => self.lead_by_name(node),
                }
            }
            ("$dynamicRef" | "$recursiveRef", _) => {
                self.references += 1;
                self.lead_by_name(node);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                self.alternatives |= keyword != "allOf";
                self.lead_all(node, Step::Stay, schemas);
            }
            ("not" | "if" | "then" | "else", schema) => self.lead(node, Step::Stay, schema),
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                self.lead_all(node, Step::Stay, schemas.values());
            }
            ("properties", Value::Object(schemas)) => {
                self.lead_all(node, Step::Part, schemas.values());
            }
            ("prefixItems" | "items", Value::Array(schemas)) => {
                self.lead_all(node, Step::Part, schemas);
            }
            ("items" | "additionalItems" | "additionalProperties", schema) => {
                self.lead(node, Step::Part, schema);
            }
            ("patternProperties", Value::Object(schemas)) => {
                self.lead_all(node, Step::AlsoPart, schemas.values());
            }
            ("contains" | "propertyNames" | "contentSchema", schema) => {
                self.lead(node, Step::AlsoPart, schema);
            }
            ("unevaluatedItems" | "unevaluatedProperties", schema) => {
                self.nodes[node].looks_again = true;
                self.lead(node, Step::AlsoPart, schema);
            }
            // What only names lead to is not found otherwise.
            ("$defs" | "definitions", Value::Object(schemas)) => {
                for schema in schemas.values() {
                    self.add(schema);
                }
            }
            _ => {}
        }
    }

    fn lead_all(&mut self, node: usize, step: Step, schemas: impl IntoIterator<Item = &'a Value>) {
        for schema in schemas {
            self.lead(node, step, schema);
        }
    }

    fn lead(&mut self, node: usize, step: Step, schema: &'a Value) {
        if let Some(to) = self.add(schema) {
            self.nodes[node].edges.push(Edge { step, to });
        }
    }

    fn lead_by_name(&mut self, node: usize) {
        self.by_name += 1;
        self.nodes[node].leads_by_name = true;
    }

    fn add(&mut self, schema: &'a Value) -> Option<usize> {
        let schema = schema.as_object()?;
        let next = self.nodes.len();
        let node = *self.known.entry(ptr::from_ref(schema)).or_insert(next);
        if node == next {
            self.nodes.push(Node::default());
            self.open.push((node, schema));
        }
        Some(node)
    }
}

#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    Done,
}

/// How large a schema is.
#[derive(Default)]
pub(super) struct Measure {
    parts: usize,
    pub(super) patterns: usize,
}

/// Measures a schema, before anything else looks into it.
pub(super) fn measure(schema: &Map<String, Value>) -> Result<Measure, SchemaError> {
    let mut measure = Measure::default();
    let mut open = Vec::new();
    measure.count_members(schema, 0, &mut open);
    while let Some((value, depth)) = open.pop() {
        measure.parts += 1;
        if measure.parts > PARTS {
            return Err(SchemaError::TooMuch("is too large"));
        }
        if depth > DEPTH {
            return Err(SchemaError::TooMuch("is too deep"));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => measure.count_members(members, depth, &mut open),
            _ => {}
        }
    }
    Ok(measure)
}

impl Measure {
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
