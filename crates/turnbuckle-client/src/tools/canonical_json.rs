//! Canonical JSON (RFC 8785).
//!
//! Integers beyond 2^53, which the RFC does not define, are written in full, so that different ones stay different.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// Serializes a value in canonical form.
pub(super) fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            list(out, ['{', '}'], members, |(name, value), out| {
                string(name, out);
                out.push(':');
                write(value, out);
            });
        }
        Value::Array(values) => list(out, ['[', ']'], values, write),
        Value::String(text) => string(text, out),
        Value::Number(written) => number(written, out),
        Value::Bool(_) | Value::Null => out.push_str(&value.to_string()),
    }
}

fn list<T>(
    out: &mut String,
    [open, close]: [char; 2],
    entries: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    out.push(open);
    for (at, entry) in entries.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(entry, out);
    }
    out.push(close);
}

/// Escapes only what must be escaped, in the shortest form; serde_json does what the RFC requires.
fn string(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("serializing a string does not fail"));
}

fn number(number: &Number, out: &mut String) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(value) => float(value, out),
        None => out.push_str(&number.to_string()),
    }
}

/// Writes the shortest decimal form of a number, formatted as in ECMAScript.
fn float(number: f64, out: &mut String) {
    if number == 0.0 {
        return out.push('0');
    }
    if number < 0.0 {
        out.push('-');
    }
    let scientific = format!("{:e}", number.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = digits.replace('.', "");
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The number of digits before the decimal point.
    let before = exponent.parse::<i32>().unwrap_or(0) + 1;
    match before {
        ..=-6 | 22.. => {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let _ = write!(out, "{first}{point}{rest}e{:+}", before - 1);
        }
        ..=0 => *out += &format!("0.{}{digits}", zeros(-before)),
        _ if before >= length => *out += &format!("{digits}{}", zeros(before - length)),
        _ => {
            let (whole, rest) = digits.split_at(usize::try_from(before).unwrap_or(0));
            *out += &format!("{whole}.{rest}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        text(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn members_are_sorted_by_name() {
        assert_eq!(
            canonical(r#"{"b":1,"a":{"d":[{"y":1,"x":2}],"c":null},"":true}"#),
            r#"{"":true,"a":{"c":null,"d":[{"x":2,"y":1}]},"b":1}"#
        );
        // Ordered by UTF-16: a surrogate pair sorts before U+FB33, although its code point is larger.
        assert_eq!(
            canonical(r#"{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"1":4}"#),
            "{\"1\":4,\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}"
        );
    }

    #[test]
    fn strings_have_one_spelling() {
        assert_eq!(
            canonical(r#""\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\/""#),
            r#""€$\u000f\nA'B\"\\\\\"/""#
        );
    }

    #[test]
    fn numbers_have_one_spelling() {
        for (written, expected) in [
            ("1.0", "1"),
            ("1e2", "100"),
            ("-0.0", "0"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1.5E-9", "1.5e-9"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("-1.25e22", "-1.25e+22"),
            ("333333333.33333329", "333333333.3333333"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("5e-324", "5e-324"),
        ] {
            assert_eq!(canonical(written), expected, "{written}");
        }
    }
}
