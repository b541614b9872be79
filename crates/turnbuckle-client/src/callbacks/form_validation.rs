//! Validation of form content.

use std::collections::HashSet;

use serde_json::{Number, Value};
use turnbuckle_protocol::types::{
    JsonObject,
    elicitation::{
        ElicitSchema, EnumOption, MultiSelectSchema, NumberKind, NumberSchema, PrimitiveSchema,
        SingleSelectSchema, StringFormat, StringSchema,
    },
};
use turnbuckle_text::formats::{is_date, is_date_time, is_email, is_uri};

use crate::callbacks::form::FormError;

/// Sets missing fields to their defaults.
pub(super) fn apply_defaults(schema: &ElicitSchema, content: &mut JsonObject) {
    for (name, field) in schema.fields() {
        if !content.contains_key(name)
            && let Some(default) = default(field)
        {
            content.insert(name.to_owned(), default);
        }
    }
}

/// Validates that all required fields are present, and that all present fields are known and valid.
pub(super) fn validate(schema: &ElicitSchema, content: &JsonObject) -> Result<(), FormError> {
    for (name, value) in content {
        validate_field(schema, name, value)?;
    }
    match schema
        .required_names()
        .find(|name| !content.contains_key(*name))
    {
        Some(missing) => Err(FormError::Missing(missing.to_owned())),
        None => Ok(()),
    }
}

fn default(field: &PrimitiveSchema) -> Option<Value> {
    match field {
        PrimitiveSchema::String(field) => field.default.clone().map(Value::String),
        PrimitiveSchema::Number(field) => field.default.and_then(number),
        PrimitiveSchema::Boolean(field) => field.default.map(Value::Bool),
        PrimitiveSchema::SingleSelect(field) => field.default.clone().map(Value::String),
        PrimitiveSchema::MultiSelect(field) => field.default.clone().map(Value::from),
        _ => None,
    }
}

/// Converts a default number to JSON; whole numbers are written without a fraction.
fn number(value: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number)
}

/// Validates that a field is known, and its value valid.
pub(super) fn validate_field(
    schema: &ElicitSchema,
    name: &str,
    value: &Value,
) -> Result<(), FormError> {
    let field = schema.field(name);
    let field = field.ok_or_else(|| FormError::UnknownField(name.to_owned()))?;
    validate_value(field, value).map_err(|expected| FormError::Invalid {
        field: name.to_owned(),
        expected,
    })
}

/// Validates one value; the error describes valid values.
fn validate_value(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
    let (fits, expected) = match field {
        PrimitiveSchema::String(field) => (is_text(field, value), expected_text(field)),
        PrimitiveSchema::Number(field) => (is_number(field, value), expected_number(field)),
        PrimitiveSchema::Boolean(_) => (value.is_boolean(), "true or false".to_owned()),
        PrimitiveSchema::SingleSelect(field) => {
            (is_choice(field, value), expected_choice(field.options()))
        }
        PrimitiveSchema::MultiSelect(field) => (are_choices(field, value), expected_choices(field)),
        _ => return Ok(()),
    };
    if fits { Ok(()) } else { Err(expected) }
}

fn is_text(field: &StringSchema, value: &Value) -> bool {
    let Some(text) = value.as_str() else {
        return false;
    };
    let length = text.chars().count() as u64;
    let is_of_format = match field.format {
        Some(StringFormat::Email) => is_email(text),
        Some(StringFormat::Uri) => is_uri(text),
        Some(StringFormat::Date) => is_date(text),
        Some(StringFormat::DateTime) => is_date_time(text),
        _ => true,
    };
    within(length, field.min_length, field.max_length) && is_of_format
}

fn expected_text(field: &StringSchema) -> String {
    let what = match field.format {
        Some(StringFormat::Email) => "an email address",
        Some(StringFormat::Uri) => "a URI",
        Some(StringFormat::Date) => "a date such as 2026-07-28",
        Some(StringFormat::DateTime) => "a date-time such as 2026-07-28T12:00:00Z",
        _ => "text",
    };
    match (field.min_length, field.max_length) {
        (None, None) => what.to_owned(),
        (min, max) => format!("{what} of {} characters", range(min, max)),
    }
}

fn is_number(field: &NumberSchema, value: &Value) -> bool {
    let Some(number) = value.as_f64() else {
        return false;
    };
    (field.kind == NumberKind::Number || number.fract() == 0.0)
        && field.minimum.is_none_or(|minimum| number >= minimum)
        && field.maximum.is_none_or(|maximum| number <= maximum)
}

fn expected_number(field: &NumberSchema) -> String {
    let what = match field.kind {
        NumberKind::Number => "a number",
        NumberKind::Integer => "an integer",
    };
    match (field.minimum, field.maximum) {
        (None, None) => what.to_owned(),
        (min, max) => format!("{what}, {}", range(min, max)),
    }
}

fn is_choice(field: &SingleSelectSchema, value: &Value) -> bool {
    let mut options = field.options().iter();
    options.any(|option| Some(&*option.value) == value.as_str())
}

fn expected_choice(options: &[EnumOption]) -> String {
    const SHOWN: usize = 10;
    let shown = options
        .iter()
        .take(SHOWN)
        .map(|option| format!("`{}`", option.value));
    let mut expected = format!("one of {}", shown.collect::<Vec<_>>().join(", "));
    if options.len() > SHOWN {
        expected.push_str(", …");
    }
    expected
}

fn are_choices(field: &MultiSelectSchema, value: &Value) -> bool {
    let Some(chosen) = value.as_array() else {
        return false;
    };
    let options: HashSet<_> = field
        .options()
        .iter()
        .map(|option| &*option.value)
        .collect();
    let is_option = |one: &Value| one.as_str().is_some_and(|one| options.contains(one));
    within(chosen.len() as u64, field.min_items, field.max_items) && chosen.iter().all(is_option)
}

fn expected_choices(field: &MultiSelectSchema) -> String {
    let each = expected_choice(field.options());
    match (field.min_items, field.max_items) {
        (None, None) => format!("a list, each {each}"),
        (min, max) => format!("a list of {}, each {each}", range(min, max)),
    }
}

fn within(count: u64, min: Option<u64>, max: Option<u64>) -> bool {
    min.is_none_or(|min| count >= min) && max.is_none_or(|max| count <= max)
}

fn range<T: std::fmt::Display>(min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any".to_owned(),
    }
}
