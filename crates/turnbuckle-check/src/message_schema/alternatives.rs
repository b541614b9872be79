//! Selects the intended shape among alternatives, so that the reported violation is the relevant one.

use serde_json::{Map, Value};

use super::{
    expression::{FieldShape, ValueShape},
    schema_set::SchemaSet,
    validator::{MessageValidator, fits},
    violation_text,
};

impl MessageValidator<'_> {
    /// Validates a value against alternatives.
    pub(super) fn match_alternatives(&mut self, shapes: &[ValueShape], value: &Value) {
        let all = each(self.schemas, shapes);
        let same_type: Vec<_> = all
            .iter()
            .copied()
            .filter(|shape| has_same_type(self.schemas, shape, value))
            .collect();
        match (same_type.as_slice(), value) {
            ([], _) => self.mismatch(&ValueShape::One(shapes.to_vec()), value),
            ([only], _) => self.validate(only, value),
            (several, Value::Object(object)) => self.match_objects(several, object, value),
            (several, _) => self.match_best(several, value),
        }
    }

    /// Validates an object against alternatives, by the discriminating field if there is one.
    fn match_objects(
        &mut self,
        shapes: &[&ValueShape],
        object: &Map<String, Value>,
        value: &Value,
    ) {
        let schemas = self.schemas;
        let Some(tag) = tag(schemas, shapes) else {
            return self.match_untagged(shapes, object, value);
        };
        let actual = object.get(tag);
        let intended: Vec<_> = shapes
            .iter()
            .copied()
            .filter(|shape| match (field(schemas, shape, tag), actual) {
                (Some(field), Some(actual)) => literals(schemas, &field.shape)
                    .is_some_and(|literals| literals.iter().any(|literal| fits(literal, actual))),
                (Some(field), None) => !field.required,
                (None, _) => false,
            })
            .collect();
        if !intended.is_empty() {
            return self.match_best(&intended, value);
        }
        let expected = shapes
            .iter()
            .filter_map(|shape| literals(schemas, &field(schemas, shape, tag)?.shape))
            .flatten()
            .fold(Vec::new(), |mut all: Vec<ValueShape>, literal| {
                if !all.contains(literal) {
                    all.push(literal.clone());
                }
                all
            });
        let expected = ValueShape::One(expected);
        match actual {
            Some(actual) => self.at_field(tag, |validator| validator.mismatch(&expected, actual)),
            None => self.missing(tag, &expected, object),
        }
    }

    /// Validates an object without a discriminating field, by its required fields.
    fn match_untagged(
        &mut self,
        shapes: &[&ValueShape],
        object: &Map<String, Value>,
        value: &Value,
    ) {
        let schemas = self.schemas;
        let own = |shape: &ValueShape| -> Vec<String> {
            let fields = resolve(schemas, shape).fields().filter(|it| it.required);
            let everywhere = |name: &str| {
                let mut shapes = shapes.iter();
                shapes.all(|shape| field(schemas, shape, name).is_some_and(|field| field.required))
            };
            fields
                .filter(|field| !everywhere(&field.name))
                .map(|field| field.name.clone())
                .collect()
        };
        let intended: Vec<_> = shapes
            .iter()
            .copied()
            .filter(|shape| own(shape).iter().any(|name| object.contains_key(name)))
            .collect();
        if !intended.is_empty() {
            return self.match_best(&intended, value);
        }
        let names: Vec<_> = shapes
            .iter()
            .filter_map(|shape| own(shape).into_iter().next())
            .map(|name| format!("`{name}`"))
            .collect();
        if names.is_empty() {
            self.match_best(shapes, value);
        } else {
            self.violation(format!(
                "{} is expected, but none of them is present",
                violation_text::either(&names)
            ));
        }
    }

    /// Validates against the alternative with the fewest violations; the first of equals.
    fn match_best(&mut self, shapes: &[&ValueShape], value: &Value) {
        let mut best: Option<Vec<_>> = None;
        for shape in shapes {
            let violations = self.attempt(|validator| validator.validate(shape, value));
            if violations.is_empty() {
                return;
            }
            if best
                .as_ref()
                .is_none_or(|best| violations.len() < best.len())
            {
                best = Some(violations);
            }
        }
        let literals: Vec<ValueShape> = shapes.iter().map(|&shape| shape.clone()).collect();
        if literals
            .iter()
            .all(|shape| matches!(shape, ValueShape::Literal(_)))
        {
            self.mismatch(&ValueShape::One(literals), value);
        } else {
            self.take(best.unwrap_or_default());
        }
    }
}

/// Returns all alternatives, with nested ones flattened.
fn each<'a>(schemas: &'a SchemaSet, shapes: &'a [ValueShape]) -> Vec<&'a ValueShape> {
    let mut all = Vec::new();
    for shape in shapes {
        match resolve(schemas, shape) {
            ValueShape::One(shapes) => all.extend(each(schemas, shapes)),
            _ => all.push(shape),
        }
    }
    all
}

/// Resolves a name.
pub(super) fn resolve<'a>(schemas: &'a SchemaSet, shape: &'a ValueShape) -> &'a ValueShape {
    match shape {
        ValueShape::Named(name) => schemas.shape(name),
        other => other,
    }
}

/// Returns whether a value has the JSON type of a shape.
fn has_same_type(schemas: &SchemaSet, shape: &ValueShape, value: &Value) -> bool {
    match (resolve(schemas, shape), value) {
        (ValueShape::Object(_) | ValueShape::Map(_) | ValueShape::All(_), Value::Object(_))
        | (ValueShape::List(..), Value::Array(_))
        | (ValueShape::Literal(_), Value::String(_)) => true,
        (shape, value) => fits(shape, value),
    }
}

/// Returns the name of the field that discriminates the objects by a constant.
fn tag<'a>(schemas: &'a SchemaSet, shapes: &[&'a ValueShape]) -> Option<&'a str> {
    let (first, others) = shapes.split_first()?;
    let mut fields = resolve(schemas, first).fields();
    let is_tag = |name: &str| {
        let mut shapes = others.iter().chain([first]);
        shapes.all(|shape| {
            field(schemas, shape, name)
                .is_some_and(|field| literals(schemas, &field.shape).is_some())
        })
    };
    fields
        .find(|field| is_tag(&field.name))
        .map(|field| field.name.as_str())
}

fn field<'a>(schemas: &'a SchemaSet, shape: &'a ValueShape, name: &str) -> Option<&'a FieldShape> {
    resolve(schemas, shape)
        .fields()
        .find(|field| field.name == name)
}

/// Returns the constants of a shape, if it consists of constants.
fn literals<'a>(schemas: &'a SchemaSet, shape: &'a ValueShape) -> Option<Vec<&'a ValueShape>> {
    match resolve(schemas, shape) {
        literal @ ValueShape::Literal(_) => Some(vec![literal]),
        ValueShape::One(shapes) => {
            let all = shapes.iter().map(|shape| literals(schemas, shape));
            Some(all.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}
