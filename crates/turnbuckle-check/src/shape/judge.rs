//! Looks at a value, and says where it has another shape.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::Flaw;
use super::book::Book;
use super::expression::{Field, Shape, Text};
use super::wording;

/// How many flaws of one message are told.
const MOST: usize = 20;

/// How deep a shape is followed; none of ours is half as deep.
const DEEPEST: usize = 64;

/// Looks at one message.
pub(super) struct Judge<'a> {
    pub(super) book: &'a Book,
    path: Vec<Step>,
    depth: usize,
    flaws: Vec<Flaw>,
}

/// A step on the way from the message to a value in it.
enum Step {
    Field(String),
    Item(usize),
}

impl<'a> Judge<'a> {
    /// Looks at a message with a book.
    pub(super) fn of(book: &'a Book) -> Self {
        Self {
            book,
            path: Vec::new(),
            depth: 0,
            flaws: Vec::new(),
        }
    }

    /// Looks at a member of a message.
    pub(super) fn within(book: &'a Book, member: &str) -> Self {
        let mut judge = Self::of(book);
        judge.path.push(Step::Field(member.to_owned()));
        judge
    }

    /// Looks at one member of an object, and returns what is wrong.
    pub(super) fn member(
        mut self,
        value: &Value,
        name: &str,
        required: bool,
        shape: &Shape,
    ) -> Vec<Flaw> {
        if let Some(object) = value.as_object() {
            self.field_of(object, name, required, shape);
        }
        self.flaws
    }

    /// Looks at a value.
    pub(super) fn look(&mut self, shape: &Shape, value: &Value) {
        if self.depth >= DEEPEST || self.flaws.len() >= MOST {
            return;
        }
        self.depth += 1;
        match (shape, value) {
            (Shape::Named(name), _) => self.look(self.book.shape(name), value),
            (Shape::All(shapes), _) => shapes.iter().for_each(|shape| self.look(shape, value)),
            (Shape::One(shapes), _) => self.look_at_alternatives(shapes, value),
            (Shape::List(item, most), Value::Array(items)) => {
                self.items(item, *most, items);
            }
            (Shape::Map(shape), Value::Object(members)) => {
                for (name, value) in members {
                    self.step(Step::Field(name.clone()), |judge| judge.look(shape, value));
                }
            }
            (Shape::Object(_), Value::Object(object)) => {
                for field in shape.fields() {
                    self.field(object, field);
                }
            }
            _ if !fits(shape, value) => self.unlike(shape, value),
            _ => {}
        }
        self.depth -= 1;
    }

    /// Takes a flaw down, here.
    pub(super) fn flaw(&mut self, what: String) {
        if self.flaws.len() < MOST {
            let path = self.path();
            self.flaws.push(Flaw { path, what });
        }
    }

    /// Takes down that there is something else than is expected.
    pub(super) fn unlike(&mut self, shape: &Shape, value: &Value) {
        self.flaw(wording::unlike(self.book, shape, value));
    }

    /// Takes down that a field is missing.
    pub(super) fn missing(&mut self, name: &str, shape: &Shape, object: &Map<String, Value>) {
        let what = wording::missing(self.book, shape, name, object);
        self.step(Step::Field(name.to_owned()), |judge| judge.flaw(what));
    }

    /// Looks at something within a field.
    pub(super) fn at_field(&mut self, name: &str, look: impl FnOnce(&mut Self)) {
        self.step(Step::Field(name.to_owned()), look);
    }

    /// Tries something, and returns what it would find instead of taking it down.
    pub(super) fn attempt(&mut self, look: impl FnOnce(&mut Self)) -> Vec<Flaw> {
        let before = std::mem::take(&mut self.flaws);
        look(self);
        std::mem::replace(&mut self.flaws, before)
    }

    /// Takes down what an attempt has found.
    pub(super) fn take(&mut self, flaws: Vec<Flaw>) {
        self.flaws.extend(flaws);
        self.flaws.truncate(MOST);
    }

    fn field(&mut self, object: &Map<String, Value>, field: &Field) {
        self.field_of(object, &field.name, field.required, &field.shape);
    }

    fn field_of(&mut self, object: &Map<String, Value>, name: &str, required: bool, shape: &Shape) {
        match object.get(name) {
            // Those who leave nothing out are told how to: it is the most common flaw of all.
            Some(Value::Null) if !required && !self.allows_null(shape) => {
                let what = wording::null(self.book, shape);
                self.at_field(name, |judge| judge.flaw(what));
            }
            Some(value) => self.at_field(name, |judge| judge.look(shape, value)),
            None if required => self.missing(name, shape, object),
            None => {}
        }
    }

    fn allows_null(&mut self, shape: &Shape) -> bool {
        self.attempt(|judge| judge.look(shape, &Value::Null))
            .is_empty()
    }

    fn items(&mut self, shape: &Shape, most: Option<usize>, items: &[Value]) {
        if let Some(most) = most.filter(|&most| items.len() > most) {
            let there = items.len();
            self.flaw(format!(
                "at most {most} items are expected, but there are {there}"
            ));
        }
        for (index, item) in items.iter().enumerate() {
            self.step(Step::Item(index), |judge| judge.look(shape, item));
        }
    }

    fn step(&mut self, step: Step, look: impl FnOnce(&mut Self)) {
        self.path.push(step);
        look(self);
        self.path.pop();
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            // Writing to a string cannot fail.
            let _ = match step {
                Step::Item(index) => write!(path, "[{index}]"),
                Step::Field(name) if is_plain(name) && path.is_empty() => write!(path, "{name}"),
                Step::Field(name) if is_plain(name) => write!(path, ".{name}"),
                Step::Field(name) => write!(path, "[{}]", wording::quoted(name)),
            };
        }
        path
    }
}

/// Says whether a value that has no parts has the shape.
pub(super) fn fits(shape: &Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Any, _) | (Shape::Null, Value::Null) | (Shape::Boolean, Value::Bool(_)) => true,
        (Shape::Integer(least), Value::Number(number)) => {
            // `1.0` is an integer as well.
            let whole = number.is_i64()
                || number.is_u64()
                || number.as_f64().is_some_and(|number| number.fract() == 0.0);
            let negative = number.as_f64().is_some_and(|number| number < 0.0);
            whole && !(least.is_some() && negative)
        }
        (Shape::Number(bounds), Value::Number(number)) => {
            let number = number.as_f64().unwrap_or_default();
            bounds.is_none_or(|(low, high)| (low..=high).contains(&number))
        }
        (Shape::String(Text::Base64), Value::String(text)) => is_base64(text),
        (Shape::String(_), Value::String(_)) => true,
        (Shape::Literal(literal), Value::String(text)) => literal == text,
        _ => false,
    }
}

/// Says whether a text may be base64, of any alphabet, padded or not, in lines or not.
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
