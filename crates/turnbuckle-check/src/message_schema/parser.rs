//! Parses the `.shapes` notation, which `2024-11-05.shapes` explains.

use std::{iter::Peekable, vec::IntoIter};

use super::expression::{self, FieldShape, ObjectMember, ValueShape};

/// The contents of one file.
#[derive(Debug, Default)]
pub(super) struct SchemaFile {
    /// The revision that it extends.
    pub(super) like: Option<String>,
    /// Batches are allowed.
    pub(super) batches: bool,
    /// Requests: method, parameters and result.
    pub(super) requests: Vec<(String, ParamsShape, ValueShape)>,
    /// Notifications: method and parameters.
    pub(super) notifications: Vec<(String, ParamsShape)>,
    /// The data of errors, by code.
    pub(super) errors: Vec<(i64, ValueShape)>,
    /// All other shapes, by name.
    pub(super) shapes: Vec<(String, ValueShape)>,
}

/// The parameters of a method.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParamsShape {
    pub(super) required: bool,
    pub(super) shape: ValueShape,
}

/// A line that is not blank or a comment.
struct SourceLine {
    number: usize,
    indent: usize,
    text: String,
}

type SourceLines = Peekable<IntoIter<SourceLine>>;

/// Parses a file; errors name the line.
pub(super) fn read(text: &str) -> Result<SchemaFile, String> {
    let mut lines = lines(text).into_iter().peekable();
    let mut file = SchemaFile::default();
    while let Some(head) = lines.next() {
        let at = |why: String| format!("line {}: {why}", head.number);
        if head.indent > 0 {
            return Err(at("unexpected indentation".into()));
        }
        match head.text.as_str() {
            "batches" => file.batches = true,
            "client requests" | "server requests" | "both request" => {
                file.requests.extend(each(&mut lines, request)?);
            }
            "client notifications" | "server notifications" | "both notify" => {
                file.notifications.extend(each(&mut lines, named_params)?);
            }
            "errors" => file.errors.extend(each(&mut lines, error)?),
            text => {
                if let Some(revision) = text.strip_prefix("like ") {
                    file.like = Some(revision.to_owned());
                } else if let Some((name, shape)) = text.split_once('=') {
                    let shape = expression::parse(shape).map_err(at)?;
                    file.shapes.push((name.trim().to_owned(), shape));
                } else {
                    file.shapes.push((head.text, object(&mut lines, 0)?));
                }
            }
        }
    }
    Ok(file)
}

/// Drops blank lines and comments, and joins lines that start with `=` or `|` to the previous one.
fn lines(text: &str) -> Vec<SourceLine> {
    let mut lines: Vec<SourceLine> = Vec::new();
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
            _ => lines.push(SourceLine {
                number: index + 1,
                indent: line.len() - line.trim_start().len(),
                text: text.to_owned(),
            }),
        }
    }
    lines
}

/// Parses each line below a heading.
fn each<T>(
    lines: &mut SourceLines,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent > 0) {
        all.push(read(&line.text).map_err(|why| format!("line {}: {why}", line.number))?);
    }
    Ok(all)
}

/// Parses the fields of an object, which are indented.
fn object(lines: &mut SourceLines, indent: usize) -> Result<ValueShape, String> {
    let mut members = Vec::new();
    while let Some(line) = lines.next_if(|line| line.indent > indent) {
        let at = |why: String| format!("line {}: {why}", line.number);
        if let Some(other) = line.text.strip_prefix("..") {
            members.push(ObjectMember::Fields(other.to_owned()));
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
        members.push(ObjectMember::Field(FieldShape {
            name: name.trim_end_matches('?').to_owned(),
            required: !name.ends_with('?'),
            shape,
        }));
    }
    Ok(ValueShape::Object(members))
}

/// Parses `tools/call  CallToolParams -> CallToolResult`.
fn request(text: &str) -> Result<(String, ParamsShape, ValueShape), String> {
    let (head, result) = text.split_once("->").ok_or("a request needs a result")?;
    let (name, params) = named_params(head)?;
    Ok((name, params, expression::parse(result)?))
}

/// Parses `notifications/initialized  Notice?`.
fn named_params(text: &str) -> Result<(String, ParamsShape), String> {
    let (name, params) = text
        .trim()
        .split_once(' ')
        .ok_or("a method needs parameters")?;
    let params = params.trim();
    let shape = params.strip_suffix('?');
    let params = ParamsShape {
        required: shape.is_none(),
        shape: expression::parse(shape.unwrap_or(params))?,
    };
    Ok((name.to_owned(), params))
}

/// Parses `-32042  UrlElicitationRequired`.
fn error(text: &str) -> Result<(i64, ValueShape), String> {
    let (code, data) = text.split_once(' ').ok_or("an error needs data")?;
    let code = code.parse().map_err(|_| format!("invalid code `{code}`"))?;
    Ok((code, expression::parse(data)?))
}
