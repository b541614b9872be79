//! Sample values that match a shape, and mutations of them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::message_schema::{
    alternatives::resolve,
    expression::{StringFormat, ValueShape},
    schema_set::SchemaSet,
};

/// The number of choices among alternatives: enough for every pair of nested alternatives.
const CHOICES: usize = 14;

/// Returns values of a shape: with all fields and with required ones only, for all alternatives.
pub(super) fn for_shape(schemas: &SchemaSet, shape: &ValueShape) -> Vec<Value> {
    distinct(|choice, all| {
        SampleGenerator {
            schemas,
            choice,
            all,
        }
        .make(shape)
    })
}

/// Returns the distinct values of all choices.
pub(super) fn distinct(make: impl Fn(usize, bool) -> Value) -> Vec<Value> {
    let mut values = Vec::new();
    for choice in 0..CHOICES {
        for all in [true, false] {
            let value = make(choice, all);
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    values
}

/// Returns the value with each member removed or of another type, except for locations that are `done`.
pub(super) fn mutations(
    value: &Value,
    done: &mut HashSet<(String, String)>,
) -> Vec<(String, Value)> {
    let mut mutated = Vec::new();
    for location in locations(value) {
        let (parent, name) = location.rsplit_once('/').expect("a location has a parent");
        let context = value.pointer(parent).map(outline);
        if !done.insert((location.clone(), context.unwrap_or_default())) {
            continue;
        }
        let mut without = value.clone();
        if let Some(Value::Object(parent)) = without.pointer_mut(parent) {
            parent.remove(&name.replace("~1", "/"));
            mutated.push((format!("without {location}"), without));
        }
        for other in [
            json!(null),
            json!(true),
            json!(-7),
            json!(2.5),
            json!("other"),
            json!([]),
            json!({}),
        ] {
            let mut changed = value.clone();
            if let Some(target) = changed
                .pointer_mut(&location)
                .filter(|target| **target != other)
            {
                *target = other.clone();
                mutated.push((format!("{other} at {location}"), changed));
            }
        }
    }
    mutated
}

/// Formats a value without its nested values.
fn outline(value: &Value) -> String {
    let name = |(name, value): (&String, &Value)| match value {
        Value::Object(_) | Value::Array(_) => name.clone(),
        value => format!("{name} {value}"),
    };
    match value {
        Value::Object(members) => members.iter().map(name).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn locations(value: &Value) -> Vec<String> {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, value)| (at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    members
        .into_iter()
        .flat_map(|(name, value)| {
            let within = locations(value).into_iter().map({
                let name = name.clone();
                move |location| format!("/{name}{location}")
            });
            within.chain([format!("/{name}")]).collect::<Vec<_>>()
        })
        .collect()
}

struct SampleGenerator<'a> {
    schemas: &'a SchemaSet,
    choice: usize,
    /// Set to include optional fields.
    all: bool,
}

impl SampleGenerator<'_> {
    fn make(&self, shape: &ValueShape) -> Value {
        match shape {
            ValueShape::Any => json!({ "any": "thing" }),
            ValueShape::Null => Value::Null,
            ValueShape::Boolean => json!(true),
            ValueShape::Integer(_) => json!(3),
            ValueShape::Number(None) => json!(2),
            ValueShape::Number(Some((low, high))) => json!((low + high) / 2.0),
            ValueShape::String(StringFormat::Base64) => json!("aGk="),
            ValueShape::String(_) => json!("a:text"),
            ValueShape::Literal(literal) => json!(literal),
            ValueShape::List(item, _) => json!([self.make(item)]),
            ValueShape::Map(value) => json!({ "key": self.make(value) }),
            ValueShape::Named(_) => self.make(resolve(self.schemas, shape)),
            ValueShape::One(shapes) => self.make(&shapes[self.choice % shapes.len()]),
            ValueShape::All(shapes) => {
                let mut all = Map::new();
                for shape in shapes {
                    if let Value::Object(members) = self.make(shape) {
                        all.extend(members);
                    }
                }
                Value::Object(all)
            }
            ValueShape::Object(_) => {
                let fields = shape.fields().filter(|field| field.required || self.all);
                let members = fields.map(|field| (field.name.clone(), self.make(&field.shape)));
                Value::Object(members.collect())
            }
        }
    }
}
