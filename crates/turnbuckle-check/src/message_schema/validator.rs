//! Validates a value against a shape.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{
    SchemaViolation,
    expression::{FieldShape, StringFormat, ValueShape},
    schema_set::SchemaSet,
    violation_text,
};

/// The maximum number of violations per message.
const MAX_VIOLATIONS: usize = 20;

/// The maximum depth; the shapes need less than half of it.
const MAX_DEPTH: usize = 64;

/// Validates one message.
pub(super) struct MessageValidator<'a> {
    pub(super) schemas: &'a SchemaSet,
    path: Vec<PathSegment>,
    depth: usize,
    violations: Vec<SchemaViolation>,
}

/// A segment of a path.
enum PathSegment {
    Field(String),
    Item(usize),
}

impl<'a> MessageValidator<'a> {
    /// Creates a validator.
    pub(super) fn new(schemas: &'a SchemaSet) -> Self {
        Self {
            schemas,
            path: Vec::new(),
            depth: 0,
            violations: Vec::new(),
        }
    }

    /// Creates a validator for a member of a message.
    pub(super) fn for_member(schemas: &'a SchemaSet, member: &str) -> Self {
        let mut validator = Self::new(schemas);
        validator.path.push(PathSegment::Field(member.to_owned()));
        validator
    }

    /// Validates one member of an object.
    pub(super) fn member(
        mut self,
        value: &Value,
        name: &str,
        required: bool,
        shape: &ValueShape,
    ) -> Vec<SchemaViolation> {
        if let Some(object) = value.as_object() {
            self.field_of(object, name, required, shape);
        }
        self.violations
    }

    /// Validates a value.
    pub(super) fn validate(&mut self, shape: &ValueShape, value: &Value) {
        if self.depth >= MAX_DEPTH || self.violations.len() >= MAX_VIOLATIONS {
            return;
        }
        self.depth += 1;
        match (shape, value) {
            (ValueShape::Named(name), _) => self.validate(self.schemas.shape(name), value),
            (ValueShape::All(shapes), _) => {
                shapes.iter().for_each(|shape| self.validate(shape, value));
            }
            (ValueShape::One(shapes), _) => self.match_alternatives(shapes, value),
            (ValueShape::List(item, most), Value::Array(items)) => {
                self.items(item, *most, items);
            }
            (ValueShape::Map(shape), Value::Object(members)) => {
                for (name, value) in members {
                    self.step(PathSegment::Field(name.clone()), |validator| {
                        validator.validate(shape, value);
                    });
                }
            }
            (ValueShape::Object(_), Value::Object(object)) => {
                for field in shape.fields() {
                    self.field(object, field);
                }
            }
            _ if !fits(shape, value) => self.mismatch(shape, value),
            _ => {}
        }
        self.depth -= 1;
    }

    /// Records a violation at the current path.
    pub(super) fn violation(&mut self, observed: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            let path = self.path();
            self.violations.push(SchemaViolation { path, observed });
        }
    }

    /// Records an unexpected value.
    pub(super) fn mismatch(&mut self, shape: &ValueShape, value: &Value) {
        self.violation(violation_text::mismatch(self.schemas, shape, value));
    }

    /// Records a missing field.
    pub(super) fn missing(&mut self, name: &str, shape: &ValueShape, object: &Map<String, Value>) {
        let observed = violation_text::missing(self.schemas, shape, name, object);
        self.step(PathSegment::Field(name.to_owned()), |validator| {
            validator.violation(observed);
        });
    }

    /// Validates within a field.
    pub(super) fn at_field(&mut self, name: &str, validate: impl FnOnce(&mut Self)) {
        self.step(PathSegment::Field(name.to_owned()), validate);
    }

    /// Returns the violations of an attempt without recording them.
    pub(super) fn attempt(&mut self, validate: impl FnOnce(&mut Self)) -> Vec<SchemaViolation> {
        let before = std::mem::take(&mut self.violations);
        validate(self);
        std::mem::replace(&mut self.violations, before)
    }

    /// Records the violations of an attempt.
    pub(super) fn take(&mut self, violations: Vec<SchemaViolation>) {
        self.violations.extend(violations);
        self.violations.truncate(MAX_VIOLATIONS);
    }

    fn field(&mut self, object: &Map<String, Value>, field: &FieldShape) {
        self.field_of(object, &field.name, field.required, &field.shape);
    }

    fn field_of(
        &mut self,
        object: &Map<String, Value>,
        name: &str,
        required: bool,
        shape: &ValueShape,
    ) {
        match object.get(name) {
            // Null instead of an omitted field is the most common violation: say how to fix it.
            Some(Value::Null) if !required && !self.allows_null(shape) => {
                let observed = violation_text::null(self.schemas, shape);
                self.at_field(name, |validator| validator.violation(observed));
            }
            Some(value) => self.at_field(name, |validator| validator.validate(shape, value)),
            None if required => self.missing(name, shape, object),
            None => {}
        }
    }

    fn allows_null(&mut self, shape: &ValueShape) -> bool {
        self.attempt(|validator| validator.validate(shape, &Value::Null))
            .is_empty()
    }

    fn items(&mut self, shape: &ValueShape, most: Option<usize>, items: &[Value]) {
        if let Some(most) = most.filter(|&most| items.len() > most) {
            let there = items.len();
            self.violation(format!(
                "at most {most} items are expected, but there are {there}"
            ));
        }
        for (index, item) in items.iter().enumerate() {
            self.step(PathSegment::Item(index), |validator| {
                validator.validate(shape, item);
            });
        }
    }

    fn step(&mut self, step: PathSegment, validate: impl FnOnce(&mut Self)) {
        self.path.push(step);
        validate(self);
        self.path.pop();
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            // Writing to a string cannot fail.
            let _ = match step {
                PathSegment::Item(index) => write!(path, "[{index}]"),
                PathSegment::Field(name) if is_plain(name) && path.is_empty() => {
                    write!(path, "{name}")
                }
                PathSegment::Field(name) if is_plain(name) => write!(path, ".{name}"),
                PathSegment::Field(name) => write!(path, "[{}]", violation_text::quoted(name)),
            };
        }
        path
    }
}

/// Returns whether a value without members matches the shape.
pub(super) fn fits(shape: &ValueShape, value: &Value) -> bool {
    match (shape, value) {
        (ValueShape::Any, _)
        | (ValueShape::Null, Value::Null)
        | (ValueShape::Boolean, Value::Bool(_)) => true,
        (ValueShape::Integer(least), Value::Number(number)) => {
            // `1.0` is also an integer.
            let is_integer = number.is_i64()
                || number.is_u64()
                || number.as_f64().is_some_and(|number| number.fract() == 0.0);
            let negative = number.as_f64().is_some_and(|number| number < 0.0);
            is_integer && !(least.is_some() && negative)
        }
        (ValueShape::Number(bounds), Value::Number(number)) => {
            let number = number.as_f64().unwrap_or_default();
            bounds.is_none_or(|(low, high)| (low..=high).contains(&number))
        }
        (ValueShape::String(StringFormat::Base64), Value::String(text)) => is_base64(text),
        (ValueShape::String(_), Value::String(_)) => true,
        (ValueShape::Literal(literal), Value::String(text)) => literal == text,
        _ => false,
    }
}

/// Returns whether a text may be base64, in any alphabet, with or without padding and line breaks.
fn is_base64(text: &str) -> bool {
    let digits = text
        .trim_end_matches(['=', '\r', '\n'])
        .bytes()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'));
    let mut length = 0_usize;
    for digit in digits {
        if !(digit.is_ascii_alphanumeric() || b"+/-_".contains(&digit)) {
            return false;
        }
        length += 1;
    }
    length % 4 != 1
}

fn is_plain(name: &str) -> bool {
    let word = |letter: char| letter.is_ascii_alphanumeric() || "_$-".contains(letter);
    !name.is_empty() && name.len() <= 60 && name.chars().all(word)
}
