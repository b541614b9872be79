//! What is wrong with a value, in words that a model can act on.

use std::{borrow::Cow, cmp::Reverse, fmt::Write};

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::Location,
};
use serde_json::Value;

/// No explanation is longer, in bytes.
const LENGTH: usize = 1000;
/// No name, string or list that is quoted is longer, in bytes.
const QUOTED: usize = 120;

/// Tells what is wrong with `value`, whose paths begin with `name`.
pub(super) struct Explanation<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a Value,
}

impl Explanation<'_> {
    /// One line for all mistakes, each with its path.
    pub(super) fn list<'e>(&self, errors: impl IntoIterator<Item = ValidationError<'e>>) -> String {
        let lines: Vec<_> = errors.into_iter().map(|error| self.line(&error)).collect();
        short(&lines.join("; "), LENGTH).into_owned()
    }

    fn line(&self, error: &ValidationError<'_>) -> String {
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.none_fits(error, context)
            }
            Kind::PropertyNames { error: of_name } => {
                format!("{}: a name in it: {}", self.place(error), mistake(of_name))
            }
            _ => format!("{}: {}", self.place(error), mistake(error)),
        }
    }

    /// Of many alternatives, only what is wrong with the nearest one helps.
    fn none_fits(
        &self,
        error: &ValidationError<'_>,
        alternatives: &[Vec<ValidationError<'static>>],
    ) -> String {
        let place = self.place(error);
        let types: Option<Vec<_>> = alternatives
            .iter()
            .map(|mistakes| mistakes.iter().find_map(|it| other_type(error, it)))
            .collect();
        if let Some(mut types) = types {
            types.dedup();
            let (found, expected) = (found(error.instance()), either(&types));
            return format!("{place}: invalid type: {found}, expected {expected}");
        }
        let nearest = alternatives
            .iter()
            .filter(|mistakes| !mistakes.is_empty())
            .min_by_key(|mistakes| {
                let is_other_type = mistakes.iter().any(|it| other_type(error, it).is_some());
                let depths = mistakes.iter().map(|it| depth(it.instance_path()));
                (is_other_type, mistakes.len(), Reverse(depths.max()))
            });
        match nearest {
            Some(mistakes) => {
                let named = mistakes.iter().take(super::NAMED);
                named
                    .map(|mistake| self.line(mistake))
                    .collect::<Vec<_>>()
                    .join("; ")
            }
            None => format!("{place}: fits none of the alternatives"),
        }
    }

    /// `` `name.member[2].member` ``: a number is an index only where the value has an array.
    fn place(&self, error: &ValidationError<'_>) -> String {
        let mut place = format!("`{}", self.name);
        let mut at = Some(self.value);
        for step in error.instance_path().as_str().split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let _ = match at {
                Some(Value::Array(_)) => write!(place, "[{step}]"),
                _ => write!(place, ".{}", short(&step, QUOTED)),
            };
            at = at.and_then(|value| match value {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                Value::Object(members) => members.get(&step),
                _ => None,
            });
        }
        place.push('`');
        place
    }
}

fn depth(path: &Location) -> usize {
    path.as_str().matches('/').count()
}

/// The type that an alternative wants, where the value as a whole has another one.
fn other_type(whole: &ValidationError<'_>, mistake: &ValidationError<'_>) -> Option<String> {
    match mistake.kind() {
        Kind::Type { kind } if mistake.instance_path() == whole.instance_path() => {
            Some(types(kind))
        }
        _ => None,
    }
}

fn mistake(error: &ValidationError<'_>) -> String {
    let expected = match error.kind() {
        Kind::Required { property } => return format!("missing field {}", quoted_name(property)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            return unknown(unexpected);
        }
        Kind::Type { kind } => {
            return format!(
                "invalid type: {}, expected {}",
                found(error.instance()),
                types(kind)
            );
        }
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("at most {}", count(*limit, "character")),
        Kind::Pattern { pattern } => format!("a match of the pattern `{}`", short(pattern, QUOTED)),
        Kind::Format { format } => format!("the format `{format}`"),
        Kind::MinItems { limit } => format!("at least {}", count(*limit, "item")),
        Kind::MaxItems { limit } => format!("at most {}", count(*limit, "item")),
        Kind::AdditionalItems { limit } => format!("at most {}", count(*limit as u64, "item")),
        Kind::UnevaluatedItems { .. } => "no further items".to_owned(),
        Kind::UniqueItems => "items that all differ".to_owned(),
        Kind::Contains => "items as `contains` wants them".to_owned(),
        Kind::MinProperties { limit } => format!("at least {}", count(*limit, "member")),
        Kind::MaxProperties { limit } => format!("at most {}", count(*limit, "member")),
        Kind::Constant { expected_value } => quoted(expected_value),
        Kind::Enum { options } => options.as_array().map_or_else(String::new, |options| {
            either(&options.iter().map(quoted).collect::<Vec<_>>())
        }),
        Kind::OneOfMultipleValid { .. } => "a fit of one alternative only".to_owned(),
        Kind::Not { .. } => "something that `not` does not rule out".to_owned(),
        Kind::FalseSchema if is_of(error, "additionalProperties") => {
            return "expected no fields".to_owned();
        }
        Kind::FalseSchema => "nothing here".to_owned(),
        _ => return short(&error.masked().to_string(), QUOTED).into_owned(),
    };
    format!(
        "invalid value: {}, expected {}",
        found(error.instance()),
        short(&expected, 2 * QUOTED)
    )
}

fn is_of(error: &ValidationError<'_>, keyword: &str) -> bool {
    error.schema_path().as_str().rsplit('/').next() == Some(keyword)
}

fn unknown(names: &[String]) -> String {
    let mut text = String::from("unknown field");
    for (index, name) in names.iter().take(super::NAMED).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma} `{}`", short(name, QUOTED));
    }
    match names.len().saturating_sub(super::NAMED) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => either(
            &kinds
                .iter()
                .map(|kind| kind.to_string())
                .collect::<Vec<_>>(),
        ),
    }
}

fn either(choices: &[String]) -> String {
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

/// What stands there; never at length, for a peer may have sent megabytes.
fn found(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => format!("boolean `{truth}`").into(),
        Value::Number(number) => format!("number `{number}`").into(),
        Value::String(text) => format!("string {:?}", short(text, QUOTED)).into(),
        Value::Array(items) => format!("array of {}", count(items.len() as u64, "item")).into(),
        Value::Object(_) => "object".into(),
    }
}

fn quoted(value: &Value) -> String {
    short(&value.to_string(), QUOTED).into_owned()
}

fn quoted_name(name: &Value) -> String {
    match name {
        Value::String(name) => format!("`{}`", short(name, QUOTED)),
        other => quoted(other),
    }
}

fn short(text: &str, length: usize) -> Cow<'_, str> {
    if text.len() <= length {
        return text.into();
    }
    let mut end = length;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end]).into()
}
