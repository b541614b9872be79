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
        let field = schema.field(name);
        let field = field.ok_or_else(|| FormError::UnknownField(name.clone()))?;
        validate_field(field, value).map_err(|expected| FormError::Invalid {
            field: name.clone(),
            expected,
        })?;
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

/// Validates one value; the error describes valid values.
fn validate_field(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
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

/// Returns whether text looks like an email address: a local part, `@`, and a host name.
pub(super) fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_plain = |char: char| !char.is_whitespace() && !char.is_control() && char != '@';
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|char| char.is_alphanumeric() || char == '-')
    };
    !local.is_empty()
        && local.chars().all(is_plain)
        && !local.split('.').any(str::is_empty)
        && domain.split('.').all(is_label)
}

/// Returns whether text is a URI with a scheme, in the characters of RFC 3986.
pub(super) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    is_scheme(scheme) && !rest.is_empty() && has_uri_characters(rest)
}

fn is_scheme(scheme: &str) -> bool {
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Returns whether all characters are allowed in a URI, and each `%` starts two hexadecimal digits.
pub(in crate::callbacks) fn has_uri_characters(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let width = match byte {
            b'%' => match bytes.get(at + 1..at + 3) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => 3,
                _ => return false,
            },
            byte if byte.is_ascii_alphanumeric() => 1,
            byte if b"-._~:/?#[]@!$&'()*+,;=".contains(byte) => 1,
            _ => return false,
        };
        at += width;
    }
    true
}

/// Returns whether text is a calendar date, such as `2026-07-28`.
pub(super) fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, '-', [4, 2, 2]) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Returns whether text is an RFC 3339 date-time with an offset, such as `2026-07-28T12:00:00Z`.
pub(super) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let Some(at) = time.find(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (time, offset) = time.split_at(at);
    is_date(date) && is_time(time) && is_offset(offset)
}

fn is_time(text: &str) -> bool {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, fraction),
        None => (text, "0"),
    };
    // Second 60 is a leap second.
    let is_clock = numbers(whole, ':', [2, 2, 2])
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second <= 60);
    is_clock && !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_offset(text: &str) -> bool {
    let is_zero = text.eq_ignore_ascii_case("z");
    is_zero
        || numbers(&text[1..], ':', [2, 2]).is_some_and(|[hour, minute]| hour < 24 && minute < 60)
}

/// Parses numbers with a fixed number of digits each, separated by a character.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(between);
    let mut found = [0; N];
    for (number, width) in found.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_plain = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_plain.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}
