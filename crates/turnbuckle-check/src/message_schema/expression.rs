//! Shapes of values, and their one-line notation: `[Tool]`, `"user" | "assistant"`, `number 0..=1`.

use std::{iter::Peekable, vec::IntoIter};

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueShape {
    /// Any value.
    Any,
    Null,
    Boolean,
    /// An integer with an optional minimum.
    Integer(Option<i64>),
    /// A number with optional bounds.
    Number(Option<(f64, f64)>),
    String(StringFormat),
    /// A constant string.
    Literal(String),
    /// An array with an optional maximum length.
    List(Box<ValueShape>, Option<usize>),
    /// An object with arbitrary names.
    Map(Box<ValueShape>),
    Object(Vec<ObjectMember>),
    /// A reference to a named shape.
    Named(String),
    /// All of these.
    All(Vec<ValueShape>),
    /// One of these.
    One(Vec<ValueShape>),
}

/// The format of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringFormat {
    Any,
    Base64,
    /// Informative only: URIs are not parsed here.
    Uri,
    /// Informative only.
    UriTemplate,
}

/// A line in the definition of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectMember {
    Field(FieldShape),
    /// All fields of another shape.
    Fields(String),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FieldShape {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) shape: ValueShape,
}

/// An object with unknown fields.
pub(super) static OBJECT: ValueShape = ValueShape::Object(Vec::new());

impl ValueShape {
    /// Returns the fields, if the shape is an object with resolved fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &FieldShape> {
        let members = match self {
            Self::Object(members) => members.as_slice(),
            _ => &[],
        };
        members.iter().filter_map(|member| match member {
            ObjectMember::Field(field) => Some(field),
            ObjectMember::Fields(_) => None,
        })
    }
}

/// Parses a one-line shape.
pub(super) fn parse(text: &str) -> Result<ValueShape, String> {
    let mut tokens = tokens(text)?.into_iter().peekable();
    let shape = union(&mut tokens)?;
    match tokens.next() {
        None => Ok(shape),
        Some(more) => Err(format!("unexpected `{more}`")),
    }
}

type Tokens = Peekable<IntoIter<String>>;

fn union(tokens: &mut Tokens) -> Result<ValueShape, String> {
    several(
        tokens,
        "|",
        |tokens| several(tokens, "&", single, ValueShape::All),
        ValueShape::One,
    )
}

/// Parses a list with separators.
fn several(
    tokens: &mut Tokens,
    sign: &str,
    read: impl Fn(&mut Tokens) -> Result<ValueShape, String>,
    join: impl Fn(Vec<ValueShape>) -> ValueShape,
) -> Result<ValueShape, String> {
    let mut all = vec![read(tokens)?];
    while tokens.next_if(|token| token == sign).is_some() {
        all.push(read(tokens)?);
    }
    Ok(match all.len() {
        1 => all.remove(0),
        _ => join(all),
    })
}

fn single(tokens: &mut Tokens) -> Result<ValueShape, String> {
    let token = tokens.next().ok_or("expected a shape")?;
    Ok(match token.as_str() {
        "any" => ValueShape::Any,
        "null" => ValueShape::Null,
        "boolean" => ValueShape::Boolean,
        "object" => OBJECT.clone(),
        "string" => ValueShape::String(StringFormat::Any),
        "base64" => ValueShape::String(StringFormat::Base64),
        "uri" => ValueShape::String(StringFormat::Uri),
        "uri-template" => ValueShape::String(StringFormat::UriTemplate),
        "integer" => ValueShape::Integer(bounds(tokens)?.map(|(low, _)| low)),
        "number" => ValueShape::Number(match bounds(tokens)? {
            Some((low, Some(high))) => Some((as_f64(low)?, as_f64(high)?)),
            Some((_, None)) => return Err("a number needs both bounds".into()),
            None => None,
        }),
        "[" => {
            let item = Box::new(union(tokens)?);
            let most = match tokens.next_if(|token| token == ";") {
                Some(_) => Some(most(&tokens.next().unwrap_or_default())?),
                None => None,
            };
            close(tokens, "]")?;
            ValueShape::List(item, most)
        }
        "{" => {
            let value = Box::new(union(tokens)?);
            close(tokens, "}")?;
            ValueShape::Map(value)
        }
        word => match word.strip_prefix('"') {
            Some(literal) => ValueShape::Literal(literal.to_owned()),
            None if word.starts_with(|first: char| first.is_ascii_uppercase()) => {
                ValueShape::Named(word.to_owned())
            }
            None => return Err(format!("unknown shape `{word}`")),
        },
    })
}

/// Parses `0..` or `0..=1`, if present.
fn bounds(tokens: &mut Tokens) -> Result<Option<(i64, Option<i64>)>, String> {
    let Some(token) = tokens.next_if(|token| token.contains("..")) else {
        return Ok(None);
    };
    let (low, high) = token.split_once("..").unwrap_or_default();
    let number = |text: &str| {
        text.parse()
            .map_err(|_| format!("invalid bounds `{token}`"))
    };
    let high = match high.strip_prefix('=') {
        Some(high) => Some(number(high)?),
        None => None,
    };
    Ok(Some((number(low)?, high)))
}

/// Parses `..=100`.
fn most(token: &str) -> Result<usize, String> {
    let most = token.strip_prefix("..=").and_then(|most| most.parse().ok());
    most.ok_or_else(|| format!("invalid maximum length `{token}`"))
}

fn as_f64(bound: i64) -> Result<f64, String> {
    let bound = i32::try_from(bound).map_err(|_| format!("invalid bound `{bound}`"))?;
    Ok(bound.into())
}

fn close(tokens: &mut Tokens, sign: &str) -> Result<(), String> {
    match tokens.next() {
        Some(token) if token == sign => Ok(()),
        _ => Err(format!("expected `{sign}`")),
    }
}

/// Splits a line into tokens. A literal keeps its opening quotation mark.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => match rest[1..].find('"') {
                Some(end) => end + 1,
                None => return Err("expected a closing quotation mark".into()),
            },
            '|' | '&' | '[' | ']' | '{' | '}' | ';' => 1,
            _ => rest
                .find(|next: char| next.is_whitespace() || "|&[]{};\"".contains(next))
                .unwrap_or(rest.len()),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].strip_prefix('"').unwrap_or(&rest[length..]);
        rest = rest.trim_start();
    }
    Ok(tokens)
}
