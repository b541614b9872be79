//! Whether content fits a form.

use std::collections::HashSet;

use serde_json::{Number, Value};
use turnbuckle_protocol::types::{
    JsonObject,
    elicitation::{
        ElicitSchema, EnumOption, MultiSelectSchema, NumberKind, NumberSchema, PrimitiveSchema,
        SingleSelectSchema, StringFormat, StringSchema,
    },
};

use super::{FormError, formats};

/// Gives every field that is missing its default, if it has one.
pub(super) fn fill_in(schema: &ElicitSchema, content: &mut JsonObject) {
    for (name, field) in schema.fields() {
        if !content.contains_key(name)
            && let Some(default) = default(field)
        {
            content.insert(name.to_owned(), default);
        }
    }
}

/// Checks that everything required is there, and that everything there is asked for and fits.
pub(super) fn check(schema: &ElicitSchema, content: &JsonObject) -> Result<(), FormError> {
    for (name, value) in content {
        let field = schema.field(name);
        let field = field.ok_or_else(|| FormError::UnknownField(name.clone()))?;
        check_field(field, value).map_err(|expected| FormError::Unfit {
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

/// A number as it was most likely written: whole ones without a fraction.
fn number(value: f64) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        return Some((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number)
}

/// Checks one value; the error says what it must be.
fn check_field(field: &PrimitiveSchema, value: &Value) -> Result<(), String> {
    let (fits, expected) = match field {
        PrimitiveSchema::String(field) => (is_text(field, value), text_wanted(field)),
        PrimitiveSchema::Number(field) => (is_number(field, value), number_wanted(field)),
        PrimitiveSchema::Boolean(_) => (value.is_boolean(), "true or false".to_owned()),
        PrimitiveSchema::SingleSelect(field) => {
            (is_choice(field, value), choice_wanted(field.options()))
        }
        PrimitiveSchema::MultiSelect(field) => (are_choices(field, value), choices_wanted(field)),
        _ => return Ok(()),
    };
    match fits {
        true => Ok(()),
        false => Err(expected),
    }
}

fn is_text(field: &StringSchema, value: &Value) -> bool {
    let Some(text) = value.as_str() else {
        return false;
    };
    let length = text.chars().count() as u64;
    let is_of_format = match field.format {
        Some(StringFormat::Email) => formats::is_email(text),
        Some(StringFormat::Uri) => formats::is_uri(text),
        Some(StringFormat::Date) => formats::is_date(text),
        Some(StringFormat::DateTime) => formats::is_date_time(text),
        _ => true,
    };
    within(length, field.min_length, field.max_length) && is_of_format
}

fn text_wanted(field: &StringSchema) -> String {
    let what = match field.format {
        Some(StringFormat::Email) => "an address for mail",
        Some(StringFormat::Uri) => "a URI",
        Some(StringFormat::Date) => "a date such as 2026-07-28",
        Some(StringFormat::DateTime) => "a time such as 2026-07-28T12:00:00Z",
        _ => "text",
    };
    match (field.min_length, field.max_length) {
        (None, None) => what.to_owned(),
        (least, most) => format!("{what} of {} characters", range(least, most)),
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

fn number_wanted(field: &NumberSchema) -> String {
    let what = match field.kind {
        NumberKind::Number => "a number",
        NumberKind::Integer => "a whole number",
    };
    match (field.minimum, field.maximum) {
        (None, None) => what.to_owned(),
        (least, most) => format!("{what}, {}", range(least, most)),
    }
}

fn is_choice(field: &SingleSelectSchema, value: &Value) -> bool {
    let mut options = field.options().iter();
    options.any(|option| Some(&*option.value) == value.as_str())
}

fn choice_wanted(options: &[EnumOption]) -> String {
    const SHOWN: usize = 10;
    let shown = options
        .iter()
        .take(SHOWN)
        .map(|option| format!("`{}`", option.value));
    let mut wanted = format!("one of {}", shown.collect::<Vec<_>>().join(", "));
    if options.len() > SHOWN {
        wanted.push_str(", …");
    }
    wanted
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

fn choices_wanted(field: &MultiSelectSchema) -> String {
    let each = choice_wanted(field.options());
    match (field.min_items, field.max_items) {
        (None, None) => format!("a list, each {each}"),
        (least, most) => format!("a list of {}, each {each}", range(least, most)),
    }
}

fn within(count: u64, least: Option<u64>, most: Option<u64>) -> bool {
    least.is_none_or(|least| count >= least) && most.is_none_or(|most| count <= most)
}

fn range<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => "any".to_owned(),
    }
}
