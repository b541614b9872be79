//! Which of several shapes a value means to have, so that what is told is the real problem.

use serde_json::{Map, Value};

use super::book::Book;
use super::expression::{Field, Shape};
use super::judge::{Judge, fits};
use super::wording;

impl Judge<'_> {
    /// Looks at a value that may have one of several shapes.
    pub(super) fn look_at_alternatives(&mut self, shapes: &[Shape], value: &Value) {
        let all = each(self.book, shapes);
        let alike: Vec<_> = all
            .iter()
            .copied()
            .filter(|shape| is_alike(self.book, shape, value))
            .collect();
        match (alike.as_slice(), value) {
            ([], _) => self.unlike(&Shape::One(shapes.to_vec()), value),
            ([only], _) => self.look(only, value),
            (several, Value::Object(object)) => self.look_at_objects(several, object, value),
            (several, _) => self.look_at_best(several, value),
        }
    }

    /// Looks at an object that may have one of several shapes: by the field that tells them apart, if there is one.
    fn look_at_objects(&mut self, shapes: &[&Shape], object: &Map<String, Value>, value: &Value) {
        let book = self.book;
        let Some(tag) = tag(book, shapes) else {
            return self.look_at_untagged(shapes, object, value);
        };
        let said = object.get(tag);
        let meant: Vec<_> = shapes
            .iter()
            .copied()
            .filter(|shape| match (field(book, shape, tag), said) {
                (Some(field), Some(said)) => literals(book, &field.shape)
                    .is_some_and(|literals| literals.iter().any(|literal| fits(literal, said))),
                (Some(field), None) => !field.required,
                (None, _) => false,
            })
            .collect();
        if !meant.is_empty() {
            return self.look_at_best(&meant, value);
        }
        let expected = shapes
            .iter()
            .filter_map(|shape| literals(book, &field(book, shape, tag)?.shape))
            .flatten()
            .fold(Vec::new(), |mut all: Vec<Shape>, literal| {
                if !all.contains(literal) {
                    all.push(literal.clone());
                }
                all
            });
        let expected = Shape::One(expected);
        match said {
            Some(said) => self.at_field(tag, |judge| judge.unlike(&expected, said)),
            None => self.missing(tag, &expected, object),
        }
    }

    /// Looks at an object of which only its fields tell what it is.
    fn look_at_untagged(&mut self, shapes: &[&Shape], object: &Map<String, Value>, value: &Value) {
        let book = self.book;
        let own = |shape: &Shape| -> Vec<String> {
            let fields = whole(book, shape).fields().filter(|it| it.required);
            let everywhere = |name: &str| {
                let mut shapes = shapes.iter();
                shapes.all(|shape| field(book, shape, name).is_some_and(|field| field.required))
            };
            fields
                .filter(|field| !everywhere(&field.name))
                .map(|field| field.name.clone())
                .collect()
        };
        let meant: Vec<_> = shapes
            .iter()
            .copied()
            .filter(|shape| own(shape).iter().any(|name| object.contains_key(name)))
            .collect();
        if !meant.is_empty() {
            return self.look_at_best(&meant, value);
        }
        let names: Vec<_> = shapes
            .iter()
            .filter_map(|shape| own(shape).into_iter().next())
            .map(|name| format!("`{name}`"))
            .collect();
        match names.is_empty() {
            true => self.look_at_best(shapes, value),
            false => self.flaw(format!(
                "{} is expected, but there is none of them",
                wording::either(&names)
            )),
        }
    }

    /// Takes the shape to which the least is missing; the first of them, if several are as near.
    fn look_at_best(&mut self, shapes: &[&Shape], value: &Value) {
        let mut best: Option<Vec<_>> = None;
        for shape in shapes {
            let flaws = self.attempt(|judge| judge.look(shape, value));
            if flaws.is_empty() {
                return;
            }
            if best.as_ref().is_none_or(|best| flaws.len() < best.len()) {
                best = Some(flaws);
            }
        }
        let literals: Vec<Shape> = shapes.iter().map(|&shape| shape.clone()).collect();
        match literals
            .iter()
            .all(|shape| matches!(shape, Shape::Literal(_)))
        {
            true => self.unlike(&Shape::One(literals), value),
            false => self.take(best.unwrap_or_default()),
        }
    }
}

/// Returns all alternatives, those of alternatives too.
fn each<'a>(book: &'a Book, shapes: &'a [Shape]) -> Vec<&'a Shape> {
    let mut all = Vec::new();
    for shape in shapes {
        match whole(book, shape) {
            Shape::One(shapes) => all.extend(each(book, shapes)),
            _ => all.push(shape),
        }
    }
    all
}

/// Returns what a name stands for.
pub(super) fn whole<'a>(book: &'a Book, shape: &'a Shape) -> &'a Shape {
    match shape {
        Shape::Named(name) => book.shape(name),
        other => other,
    }
}

/// Says whether a value is of the same kind as values of a shape: an object, a list, a string.
fn is_alike(book: &Book, shape: &Shape, value: &Value) -> bool {
    match (whole(book, shape), value) {
        (Shape::Object(_) | Shape::Map(_) | Shape::All(_), Value::Object(_))
        | (Shape::List(..), Value::Array(_))
        | (Shape::Literal(_), Value::String(_)) => true,
        (shape, value) => fits(shape, value),
    }
}

/// Returns the name of the field whose constant tells objects apart.
fn tag<'a>(book: &'a Book, shapes: &[&'a Shape]) -> Option<&'a str> {
    let (first, others) = shapes.split_first()?;
    let mut fields = whole(book, first).fields();
    let is_tag = |name: &str| {
        let mut shapes = others.iter().chain([first]);
        shapes.all(|shape| {
            field(book, shape, name).is_some_and(|field| literals(book, &field.shape).is_some())
        })
    };
    fields
        .find(|field| is_tag(&field.name))
        .map(|field| field.name.as_str())
}

fn field<'a>(book: &'a Book, shape: &'a Shape, name: &str) -> Option<&'a Field> {
    whole(book, shape).fields().find(|field| field.name == name)
}

/// Returns the constants that a shape consists of, if it does.
fn literals<'a>(book: &'a Book, shape: &'a Shape) -> Option<Vec<&'a Shape>> {
    match whole(book, shape) {
        literal @ Shape::Literal(_) => Some(vec![literal]),
        Shape::One(shapes) => {
            let all = shapes.iter().map(|shape| literals(book, shape));
            Some(all.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}
