//! The shape of a value, and how it is written on one line: `[Tool]`, `"user" | "assistant"`, `number 0..=1`.

use std::{iter::Peekable, vec::IntoIter};

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// Anything at all.
    Any,
    Null,
    Boolean,
    /// A number without a fraction, of this or more.
    Integer(Option<i64>),
    /// A number within these bounds.
    Number(Option<(f64, f64)>),
    String(Text),
    /// This very string.
    Literal(String),
    /// A list, of so many items at most.
    List(Box<Shape>, Option<usize>),
    /// An object with any names.
    Map(Box<Shape>),
    Object(Vec<Member>),
    /// What is said elsewhere under this name.
    Named(String),
    /// All of these at once.
    All(Vec<Shape>),
    /// One of these.
    One(Vec<Shape>),
}

/// What kind of string it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Any,
    Base64,
    /// Said for the reader: which URIs are right is a question of meaning.
    Uri,
    /// Said for the reader as well.
    UriTemplate,
}

/// A line within an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Member {
    Field(Field),
    /// All fields of another shape.
    Fields(String),
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) shape: Shape,
}

/// An object of which nothing is known.
pub(super) static OBJECT: Shape = Shape::Object(Vec::new());

impl Shape {
    /// Returns the fields, if it is an object whose lines are all fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        let members = match self {
            Self::Object(members) => members.as_slice(),
            _ => &[],
        };
        members.iter().filter_map(|member| match member {
            Member::Field(field) => Some(field),
            Member::Fields(_) => None,
        })
    }
}

/// Reads a shape that is written on one line.
pub(super) fn parse(text: &str) -> Result<Shape, String> {
    let mut tokens = tokens(text)?.into_iter().peekable();
    let shape = union(&mut tokens)?;
    match tokens.next() {
        None => Ok(shape),
        Some(more) => Err(format!("`{more}` is too much")),
    }
}

type Tokens = Peekable<IntoIter<String>>;

fn union(tokens: &mut Tokens) -> Result<Shape, String> {
    several(
        tokens,
        "|",
        |tokens| several(tokens, "&", single, Shape::All),
        Shape::One,
    )
}

/// Reads what stands between signs of a kind.
fn several(
    tokens: &mut Tokens,
    sign: &str,
    read: impl Fn(&mut Tokens) -> Result<Shape, String>,
    join: impl Fn(Vec<Shape>) -> Shape,
) -> Result<Shape, String> {
    let mut all = vec![read(tokens)?];
    while tokens.next_if(|token| token == sign).is_some() {
        all.push(read(tokens)?);
    }
    Ok(match all.len() {
        1 => all.remove(0),
        _ => join(all),
    })
}

fn single(tokens: &mut Tokens) -> Result<Shape, String> {
    let token = tokens.next().ok_or("a shape is missing")?;
    Ok(match token.as_str() {
        "any" => Shape::Any,
        "null" => Shape::Null,
        "boolean" => Shape::Boolean,
        "object" => OBJECT.clone(),
        "string" => Shape::String(Text::Any),
        "base64" => Shape::String(Text::Base64),
        "uri" => Shape::String(Text::Uri),
        "uri-template" => Shape::String(Text::UriTemplate),
        "integer" => Shape::Integer(bounds(tokens)?.map(|(low, _)| low)),
        "number" => Shape::Number(match bounds(tokens)? {
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
            Shape::List(item, most)
        }
        "{" => {
            let value = Box::new(union(tokens)?);
            close(tokens, "}")?;
            Shape::Map(value)
        }
        word => match word.strip_prefix('"') {
            Some(literal) => Shape::Literal(literal.to_owned()),
            None if word.starts_with(|first: char| first.is_ascii_uppercase()) => {
                Shape::Named(word.to_owned())
            }
            None => return Err(format!("`{word}` is no shape")),
        },
    })
}

/// Reads `0..` or `0..=1`, if it is there.
fn bounds(tokens: &mut Tokens) -> Result<Option<(i64, Option<i64>)>, String> {
    let Some(token) = tokens.next_if(|token| token.contains("..")) else {
        return Ok(None);
    };
    let (low, high) = token.split_once("..").unwrap_or_default();
    let number = |text: &str| text.parse().map_err(|_| format!("`{token}` are no bounds"));
    let high = match high.strip_prefix('=') {
        Some(high) => Some(number(high)?),
        None => None,
    };
    Ok(Some((number(low)?, high)))
}

/// Reads `..=100`.
fn most(token: &str) -> Result<usize, String> {
    let most = token.strip_prefix("..=").and_then(|most| most.parse().ok());
    most.ok_or_else(|| format!("`{token}` is no bound of a list"))
}

fn as_f64(bound: i64) -> Result<f64, String> {
    let bound = i32::try_from(bound).map_err(|_| format!("`{bound}` is no bound"))?;
    Ok(bound.into())
}

fn close(tokens: &mut Tokens, sign: &str) -> Result<(), String> {
    match tokens.next() {
        Some(token) if token == sign => Ok(()),
        _ => Err(format!("`{sign}` is missing")),
    }
}

/// Splits a line into words and signs. A literal keeps the quotation mark before it.
fn tokens(text: &str) -> Result<Vec<String>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => match rest[1..].find('"') {
                Some(end) => end + 1,
                None => return Err("a quotation mark is missing".into()),
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
