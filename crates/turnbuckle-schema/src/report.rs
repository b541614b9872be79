//! Describes validation errors in words that a model can act on.

use std::{borrow::Cow, cmp::Reverse, fmt::Write};

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as ErrorKind},
    paths::Location,
};
use serde_json::Value;

/// The maximum length of a report, in bytes.
const MAX_REPORT_BYTES: usize = 1000;
/// The maximum length of a quoted name, string or list, in bytes.
const MAX_QUOTED_BYTES: usize = 120;

/// Describes the errors of `value`, with paths that start with `name`.
pub(super) struct ErrorReport<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl ErrorReport<'_> {
    /// Returns all errors in one line, each with its path.
    pub(super) fn list<'e>(&self, errors: impl IntoIterator<Item = ValidationError<'e>>) -> String {
        let lines: Vec<_> = errors.into_iter().map(|error| self.line(&error)).collect();
        truncate(&lines.join("; "), MAX_REPORT_BYTES).into_owned()
    }

    fn line(&self, error: &ValidationError<'_>) -> String {
        match error.kind() {
            ErrorKind::AnyOf { context } | ErrorKind::OneOfNotValid { context } => {
                self.no_alternative_matches(error, context)
            }
            ErrorKind::PropertyNames { error: of_name } => {
                format!(
                    "{}: property name: {}",
                    self.location(error),
                    describe_error(of_name)
                )
            }
            _ => format!("{}: {}", self.location(error), describe_error(error)),
        }
    }

    /// Describes the errors of the alternative that is nearest to the value; those of the others would not help.
    fn no_alternative_matches(
        &self,
        error: &ValidationError<'_>,
        alternatives: &[Vec<ValidationError<'static>>],
    ) -> String {
        let location = self.location(error);
        let types: Option<Vec<_>> = alternatives
            .iter()
            .map(|errors| errors.iter().find_map(|it| expected_type(error, it)))
            .collect();
        if let Some(mut types) = types {
            types.dedup();
            let (found, expected) = (found(error.instance()), join_with_or(&types));
            return format!("{location}: invalid type: {found}, expected {expected}");
        }
        let nearest = alternatives
            .iter()
            .filter(|errors| !errors.is_empty())
            .min_by_key(|errors| {
                let is_other_type = errors.iter().any(|it| expected_type(error, it).is_some());
                let depths = errors.iter().map(|it| depth(it.instance_path()));
                (is_other_type, errors.len(), Reverse(depths.max()))
            });
        match nearest {
            Some(errors) => {
                let named = errors.iter().take(super::MAX_REPORTED_ERRORS);
                named
                    .map(|error| self.line(error))
                    .collect::<Vec<_>>()
                    .join("; ")
            }
            None => format!("{location}: matches none of the alternatives"),
        }
    }

    /// Returns `` `name.member[2].member` ``. A number is an index only if the value has an array there.
    fn location(&self, error: &ValidationError<'_>) -> String {
        let mut location = format!("`{}", self.name);
        let mut at = Some(self.value);
        for step in error.instance_path().as_str().split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let _ = match at {
                Some(Value::Array(_)) => write!(location, "[{step}]"),
                _ => write!(location, ".{}", truncate(&step, MAX_QUOTED_BYTES)),
            };
            at = at.and_then(|value| match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                Value::Object(members) => members.get(&step),
                _ => None,
            });
        }
        location.push('`');
        location
    }
}

fn depth(path: &Location) -> usize {
    path.as_str().matches('/').count()
}

/// Returns the type that an alternative expects, if the whole value has another type.
fn expected_type(whole: &ValidationError<'_>, error: &ValidationError<'_>) -> Option<String> {
    match error.kind() {
        ErrorKind::Type { kind } if error.instance_path() == whole.instance_path() => {
            Some(types(kind))
        }
        _ => None,
    }
}

fn describe_error(error: &ValidationError<'_>) -> String {
    let expected = match error.kind() {
        ErrorKind::Required { property } => {
            return format!("missing field {}", quoted_name(property));
        }
        ErrorKind::AdditionalProperties { unexpected }
        | ErrorKind::UnevaluatedProperties { unexpected } => {
            return unknown_fields(unexpected);
        }
        ErrorKind::Type { kind } => {
            return format!(
                "invalid type: {}, expected {}",
                found(error.instance()),
                types(kind)
            );
        }
        ErrorKind::Minimum { limit } => format!("at least {limit}"),
        ErrorKind::Maximum { limit } => format!("at most {limit}"),
        ErrorKind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        ErrorKind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        ErrorKind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        ErrorKind::MinLength { limit } => format!("at least {}", count(*limit, "character")),
        ErrorKind::MaxLength { limit } => format!("at most {}", count(*limit, "character")),
        ErrorKind::Pattern { pattern } => format!(
            "a match of the pattern `{}`",
            truncate(pattern, MAX_QUOTED_BYTES)
        ),
        ErrorKind::Format { format } => format!("the format `{format}`"),
        ErrorKind::MinItems { limit } => format!("at least {}", count(*limit, "item")),
        ErrorKind::MaxItems { limit } => format!("at most {}", count(*limit, "item")),
        ErrorKind::AdditionalItems { limit } => format!("at most {}", count(*limit as u64, "item")),
        ErrorKind::UnevaluatedItems { .. } => "no further items".to_owned(),
        ErrorKind::UniqueItems => "items that all differ".to_owned(),
        ErrorKind::Contains => "an item that matches `contains`".to_owned(),
        ErrorKind::MinProperties { limit } => format!("at least {}", count(*limit, "member")),
        ErrorKind::MaxProperties { limit } => format!("at most {}", count(*limit, "member")),
        ErrorKind::Constant { expected_value } => quoted(expected_value),
        ErrorKind::Enum { options } => options.as_array().map_or_else(String::new, |options| {
            join_with_or(&options.iter().map(quoted).collect::<Vec<_>>())
        }),
        ErrorKind::OneOfMultipleValid { .. } => "a match of exactly one alternative".to_owned(),
        ErrorKind::Not { .. } => "a value that does not match `not`".to_owned(),
        ErrorKind::FalseSchema if is_of(error, "additionalProperties") => {
            return "expected no fields".to_owned();
        }
        ErrorKind::FalseSchema => "nothing here".to_owned(),
        _ => return truncate(&error.masked().to_string(), MAX_QUOTED_BYTES).into_owned(),
    };
    format!(
        "invalid value: {}, expected {}",
        found(error.instance()),
        truncate(&expected, 2 * MAX_QUOTED_BYTES)
    )
}

fn is_of(error: &ValidationError<'_>, keyword: &str) -> bool {
    error.schema_path().as_str().rsplit('/').next() == Some(keyword)
}

fn unknown_fields(names: &[String]) -> String {
    let mut text = String::from("unknown field");
    for (index, name) in names.iter().take(super::MAX_REPORTED_ERRORS).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma} `{}`", truncate(name, MAX_QUOTED_BYTES));
    }
    match names.len().saturating_sub(super::MAX_REPORTED_ERRORS) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => join_with_or(
            &kinds
                .iter()
                .map(|kind| kind.to_string())
                .collect::<Vec<_>>(),
        ),
    }
}

fn join_with_or(choices: &[String]) -> String {
    match choices {
        [only] => only.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
        [] => "nothing".to_owned(),
    }
}

fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Describes a value in a few words, because a peer may have sent megabytes.
fn found(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => format!("boolean `{truth}`").into(),
        Value::Number(number) => format!("number `{number}`").into(),
        Value::String(text) => format!("string {:?}", truncate(text, MAX_QUOTED_BYTES)).into(),
        Value::Array(items) => format!("array of {}", count(items.len() as u64, "item")).into(),
        Value::Object(_) => "object".into(),
    }
}

fn quoted(value: &Value) -> String {
    truncate(&value.to_string(), MAX_QUOTED_BYTES).into_owned()
}

fn quoted_name(name: &Value) -> String {
    match name {
        Value::String(name) => format!("`{}`", truncate(name, MAX_QUOTED_BYTES)),
        other => quoted(other),
    }
}

fn truncate(text: &str, length: usize) -> Cow<'_, str> {
    if text.len() <= length {
        return text.into();
    }
    let mut end = length;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end]).into()
}
