//! One field of a form: what it is called, what fits into it, and text made into its value.

use serde_json::{Number, Value};
use turnbuckle_protocol::types::elicitation::{
    EnumOption, MultiSelectSchema, NumberKind, NumberSchema, PrimitiveSchema, StringFormat,
    StringSchema,
};

/// Returns the label of a field.
pub(super) fn title(field: &PrimitiveSchema) -> Option<&str> {
    match field {
        PrimitiveSchema::String(field) => field.title.as_deref(),
        PrimitiveSchema::Number(field) => field.title.as_deref(),
        PrimitiveSchema::Boolean(field) => field.title.as_deref(),
        PrimitiveSchema::SingleSelect(field) => field.title.as_deref(),
        PrimitiveSchema::MultiSelect(field) => field.title.as_deref(),
        _ => None,
    }
}

/// Returns what the server says about a field.
pub(super) fn description(field: &PrimitiveSchema) -> Option<&str> {
    match field {
        PrimitiveSchema::String(field) => field.description.as_deref(),
        PrimitiveSchema::Number(field) => field.description.as_deref(),
        PrimitiveSchema::Boolean(field) => field.description.as_deref(),
        PrimitiveSchema::SingleSelect(field) => field.description.as_deref(),
        PrimitiveSchema::MultiSelect(field) => field.description.as_deref(),
        _ => None,
    }
}

/// Returns what is filled in already; what the field itself does not allow is as good as nothing.
pub(super) fn default(field: &PrimitiveSchema) -> Option<Value> {
    given(field).filter(|value| fits(field, value))
}

fn given(field: &PrimitiveSchema) -> Option<Value> {
    match field {
        PrimitiveSchema::String(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::Number(field) => field.default.and_then(number),
        PrimitiveSchema::Boolean(field) => field.default.map(Value::from),
        PrimitiveSchema::SingleSelect(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::MultiSelect(field) => field.default.clone().map(Value::from),
        _ => None,
    }
}

/// Returns what can be chosen from.
pub(super) fn options(field: &PrimitiveSchema) -> &[EnumOption] {
    match field {
        PrimitiveSchema::SingleSelect(field) => field.options(),
        PrimitiveSchema::MultiSelect(field) => field.options(),
        _ => &[],
    }
}

/// Returns in a few words what fits into a field.
pub(super) fn kind(field: &PrimitiveSchema) -> String {
    match field {
        PrimitiveSchema::String(field) => match field.format {
            Some(StringFormat::Email) => "mail address",
            Some(StringFormat::Uri) => "URI",
            Some(StringFormat::Date) => "date, as 2026-01-31",
            Some(StringFormat::DateTime) => "date and time, as 2026-01-31T12:00:00Z",
            _ => "text",
        }
        .to_owned(),
        PrimitiveSchema::Number(field) => {
            let kind = match field.kind {
                NumberKind::Integer => "whole number",
                NumberKind::Number => "number",
            };
            kind.to_owned() + &between(field.minimum, field.maximum)
        }
        PrimitiveSchema::Boolean(_) => "yes or no".to_owned(),
        PrimitiveSchema::SingleSelect(_) => "one of these, by number".to_owned(),
        PrimitiveSchema::MultiSelect(field) => {
            let least = field.min_items.map(|least| least as f64);
            let most = field.max_items.map(|most| most as f64);
            format!(
                "some of these{}, by numbers with commas",
                between(least, most)
            )
        }
        _ => "text".to_owned(),
    }
}

/// Makes text into the value of a field, or says what is wrong with it.
pub(super) fn read(field: &PrimitiveSchema, text: &str) -> Result<Value, String> {
    match field {
        PrimitiveSchema::String(field) => read_text(field, text),
        PrimitiveSchema::Number(field) => read_number(field, text),
        PrimitiveSchema::Boolean(_) => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("answer `yes` or `no`".to_owned()),
        },
        PrimitiveSchema::SingleSelect(field) => choose(field.options(), text).map(Value::from),
        PrimitiveSchema::MultiSelect(field) => read_several(field, text),
        _ => Ok(text.into()),
    }
}

fn fits(field: &PrimitiveSchema, value: &Value) -> bool {
    let offered = |value: &Value| {
        let mut options = options(field).iter();
        options.any(|option| value.as_str() == Some(&*option.value))
    };
    match (field, value) {
        (PrimitiveSchema::String(field), Value::String(text)) => read_text(field, text).is_ok(),
        (PrimitiveSchema::Number(field), value) => read_number(field, &value.to_string()).is_ok(),
        (PrimitiveSchema::SingleSelect(_), value) => offered(value),
        (PrimitiveSchema::MultiSelect(field), Value::Array(values)) => {
            values.iter().all(offered) && has_room(field, values.len())
        }
        _ => true,
    }
}

fn read_text(field: &StringSchema, text: &str) -> Result<Value, String> {
    let length = text.chars().count() as u64;
    if let Some(least) = field.min_length.filter(|&least| length < least) {
        return Err(format!("at least {least} letters are needed"));
    }
    if let Some(most) = field.max_length.filter(|&most| length > most) {
        return Err(format!("at most {most} letters have room"));
    }
    let fits = match field.format {
        Some(StringFormat::Email) => is_mail(text),
        Some(StringFormat::Uri) => is_uri(text),
        Some(StringFormat::Date) => is_date(text),
        Some(StringFormat::DateTime) => is_moment(text),
        _ => true,
    };
    match fits {
        true => Ok(text.into()),
        false => Err(format!("this is no {}", kind(&field.clone().into()))),
    }
}

fn read_number(field: &NumberSchema, text: &str) -> Result<Value, String> {
    let wrong = || format!("this is no {}", kind(&field.clone().into()));
    let value: f64 = text.parse().map_err(|_| wrong())?;
    let inside = field.minimum.is_none_or(|least| value >= least)
        && field.maximum.is_none_or(|most| value <= most);
    if !inside {
        return Err(wrong());
    }
    match (text.parse::<i64>(), field.kind) {
        (Ok(whole), _) => Ok(whole.into()),
        (Err(_), NumberKind::Integer) => Err(wrong()),
        (Err(_), NumberKind::Number) => number(value).ok_or_else(wrong),
    }
}

fn read_several(field: &MultiSelectSchema, text: &str) -> Result<Value, String> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let mut chosen: Vec<String> = Vec::new();
    for word in words {
        let value = choose(field.options(), word)?;
        if !chosen.contains(&value) {
            chosen.push(value);
        }
    }
    match has_room(field, chosen.len()) {
        true => Ok(chosen.into()),
        false => Err(format!("choose {}", kind(&field.clone().into()))),
    }
}

fn has_room(field: &MultiSelectSchema, count: usize) -> bool {
    let count = count as u64;
    let enough = field.min_items.is_none_or(|least| count >= least);
    enough && field.max_items.is_none_or(|most| count <= most)
}

/// By the number that is shown, otherwise by value or title.
fn choose(options: &[EnumOption], text: &str) -> Result<String, String> {
    let numbered = text
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_sub(1));
    let numbered = numbered.and_then(|at| options.get(at));
    let named = || {
        let mut options = options.iter();
        options.find(|option| option.value == text || option.title.as_deref() == Some(text))
    };
    let option = numbered.or_else(named);
    option
        .map(|option| option.value.clone())
        .ok_or_else(|| format!("`{text}` is none of 1 to {}", options.len()))
}

fn between(least: Option<f64>, most: Option<f64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", {least} or more"),
        (None, Some(most)) => format!(", {most} or less"),
        (None, None) => String::new(),
    }
}

/// Whole numbers are written without a fraction.
fn number(value: f64) -> Option<Value> {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => Some((value as i64).into()),
        false => Number::from_f64(value).map(Value::Number),
    }
}

fn is_mail(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else {
        return false;
    };
    let spaced = text.contains(char::is_whitespace);
    !name.is_empty() && host.split('.').all(|part| !part.is_empty()) && !spaced
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let letter = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    named && scheme.chars().all(letter) && !rest.is_empty() && !text.contains(char::is_whitespace)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// RFC 3339: date, time, and how far from UTC.
fn is_moment(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't']) else {
        return false;
    };
    let Some(at) = rest.find(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (time, zone) = rest.split_at(at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let exact = !fraction.is_empty() && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let zone = zone.eq_ignore_ascii_case("z") || is_clock(&zone[1..], &[23, 59]);
    is_date(date) && is_clock(time, &[23, 59, 60]) && exact && zone
}

fn is_clock(text: &str, most: &[u32]) -> bool {
    let parts: Vec<_> = text.split(':').collect();
    let fits = |(part, most): (&&str, &u32)| digits(part, 2).is_some_and(|value| value <= *most);
    parts.len() == most.len() && parts.iter().zip(most).all(fits)
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let all = text.len() == count && text.bytes().all(|digit| digit.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}
