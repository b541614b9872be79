//! Reads a file of shapes, as `2024-11-05.shapes` explains them.

use std::{iter::Peekable, vec::IntoIter};

use super::expression::{self, Field, Member, Shape};

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The revision that it builds on.
    pub(super) like: Option<String>,
    /// Whether several messages may be sent as one.
    pub(super) batches: bool,
    /// Methods of requests: the name, the parameters, the result.
    pub(super) requests: Vec<(String, Params, Shape)>,
    /// Methods of notifications: the name, the parameters.
    pub(super) notifications: Vec<(String, Params)>,
    /// The data of errors, by their codes.
    pub(super) errors: Vec<(i64, Shape)>,
    /// All other shapes, by their names.
    pub(super) shapes: Vec<(String, Shape)>,
}

/// The parameters of a method.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Params {
    pub(super) required: bool,
    pub(super) shape: Shape,
}

/// A line that says something.
struct Line {
    number: usize,
    indent: usize,
    text: String,
}

type Lines = Peekable<IntoIter<Line>>;

/// Reads a file; says in which line it is wrong.
pub(super) fn read(text: &str) -> Result<Page, String> {
    let mut lines = lines(text).into_iter().peekable();
    let mut page = Page::default();
    while let Some(head) = lines.next() {
        let at = |why: String| format!("line {}: {why}", head.number);
        if head.indent > 0 {
            return Err(at("this belongs to nothing".into()));
        }
        match head.text.as_str() {
            "batches" => page.batches = true,
            "client asks" | "server asks" | "both ask" => {
                page.requests.extend(each(&mut lines, request)?);
            }
            "client tells" | "server tells" | "both tell" => {
                page.notifications.extend(each(&mut lines, named_params)?);
            }
            "errors" => page.errors.extend(each(&mut lines, error)?),
            text => {
                if let Some(revision) = text.strip_prefix("like ") {
                    page.like = Some(revision.to_owned());
                } else if let Some((name, shape)) = text.split_once('=') {
                    let shape = expression::parse(shape).map_err(at)?;
                    page.shapes.push((name.trim().to_owned(), shape));
                } else {
                    page.shapes.push((head.text, object(&mut lines, 0)?));
                }
            }
        }
    }
    Ok(page)
}

/// Keeps what says something, and joins lines that begin with `=` or `|` to the ones before.
fn lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match lines.last_mut() {
            Some(before) if text.starts_with(['=', '|']) => {
                before.text.push(' ');
                before.text.push_str(text);
            }
            _ => lines.push(Line {
                number: index + 1,
                indent: line.len() - line.trim_start().len(),
                text: text.to_owned(),
            }),
        }
    }
    lines
}

/// Reads the lines below a heading, each by itself.
fn each<T>(lines: &mut Lines, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent > 0) {
        all.push(read(&line.text).map_err(|why| format!("line {}: {why}", line.number))?);
    }
    Ok(all)
}

/// Reads the fields of an object, which stand deeper than its name does.
fn object(lines: &mut Lines, indent: usize) -> Result<Shape, String> {
    let mut members = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent > indent) {
        let at = |why: String| format!("line {}: {why}", line.number);
        if let Some(other) = line.text.strip_prefix("..") {
            members.push(Member::Fields(other.to_owned()));
            continue;
        }
        let (name, shape) = line
            .text
            .split_once(':')
            .ok_or_else(|| at("a field needs a colon".into()))?;
        let shape = match shape.trim() {
            "" => object(lines, line.indent)?,
            shape => expression::parse(shape).map_err(at)?,
        };
        members.push(Member::Field(Field {
            name: name.trim_end_matches('?').to_owned(),
            required: !name.ends_with('?'),
            shape,
        }));
    }
    Ok(Shape::Object(members))
}

/// Reads `tools/call  CallToolParams -> CallToolResult`.
fn request(text: &str) -> Result<(String, Params, Shape), String> {
    let (asked, result) = text.split_once("->").ok_or("a request needs a result")?;
    let (name, params) = named_params(asked)?;
    Ok((name, params, expression::parse(result)?))
}

/// Reads `notifications/initialized  Notice?`.
fn named_params(text: &str) -> Result<(String, Params), String> {
    let (name, params) = text
        .trim()
        .split_once(' ')
        .ok_or("a method needs parameters")?;
    let params = params.trim();
    let shape = params.strip_suffix('?');
    let params = Params {
        required: shape.is_none(),
        shape: expression::parse(shape.unwrap_or(params))?,
    };
    Ok((name.to_owned(), params))
}

/// Reads `-32042  UrlElicitationRequired`.
fn error(text: &str) -> Result<(i64, Shape), String> {
    let (code, data) = text.split_once(' ').ok_or("an error needs data")?;
    let code = code.parse().map_err(|_| format!("`{code}` is no code"))?;
    Ok((code, expression::parse(data)?))
}
