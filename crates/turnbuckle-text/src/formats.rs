//! The string formats of form elicitation: `email`, `uri`, `date` and `date-time`.

use crate::percent;

/// Returns whether the text is an email address: a local part, `@`, and a host name.
pub fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_local =
        |character: char| !character.is_whitespace() && !character.is_control() && character != '@';
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|character| character.is_alphanumeric() || character == '-')
    };
    !local.is_empty()
        && local.chars().all(is_local)
        && !local.split('.').any(str::is_empty)
        && domain.split('.').all(is_label)
}

/// Returns whether the text is an absolute URI in the characters of RFC 3986.
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    is_scheme(scheme) && !rest.is_empty() && has_uri_characters(rest)
}

/// Returns whether each character may occur in a URI, and two hexadecimal digits follow each `%`.
pub fn has_uri_characters(text: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"%-._~:/?#[]@!$&'()*+,;=".contains(&byte);
    text.bytes().all(is_allowed) && percent::has_valid_escapes(text)
}

/// Returns whether the text is a date of the calendar: `2026-07-28`.
pub fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = parse_numbers(text, '-', [4, 2, 2]) else {
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

/// Returns whether the text is a date and time of RFC 3339 with its offset: `2026-07-28T12:00:00Z`.
pub fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let Some(at) = time.find(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (time, offset) = time.split_at(at);
    is_date(date) && is_time(time) && is_offset(offset)
}

fn is_scheme(scheme: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_allowed)
}

fn is_time(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // A leap second is second 60.
    let is_clock = parse_numbers(whole, ':', [2, 2, 2])
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second <= 60);
    is_clock && !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_offset(text: &str) -> bool {
    let is_utc = text.eq_ignore_ascii_case("z");
    is_utc
        || parse_numbers(&text[1..], ':', [2, 2])
            .is_some_and(|[hour, minute]| hour < 24 && minute < 60)
}

/// Parses numbers with exactly so many digits each and a separator between them.
fn parse_numbers<const N: usize>(
    text: &str,
    separator: char,
    digits: [usize; N],
) -> Option<[u32; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_decimal = part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = is_decimal.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_format(format: fn(&str) -> bool, valid: &[&str], invalid: &[&str]) {
        for text in valid {
            assert!(format(text), "{text}");
        }
        for text in invalid {
            assert!(!format(text), "{text}");
        }
    }

    #[test]
    fn email_addresses() {
        assert_format(
            is_email,
            &[
                "ada@example.org",
                "a.b+c@x-y.example",
                "ü@ä.example",
                "a@localhost",
            ],
            &[
                "", "a", "@b", "a@", "a@b@c", "a..b@c", ".a@b", "a@-b", "a@b-", "a@b..c", "a b@c",
                "a@b\n",
            ],
        );
    }

    #[test]
    fn uris() {
        assert_format(
            is_uri,
            &[
                "https://a.example/x?y#z",
                "mailto:ada@example.org",
                "urn:a:b",
                "x-y+z.1:%20",
            ],
            &[
                "", "a", ":a", "1a:b", "a:", "a: b", "a:%2", "a:%zz", "ä:b", "a:ü",
            ],
        );
    }

    #[test]
    fn dates() {
        assert_format(
            is_date,
            &["2026-07-28", "2024-02-29", "2000-02-29", "0001-12-31"],
            &[
                "",
                "2026-7-28",
                "2026-02-29",
                "1900-02-29",
                "2026-13-01",
                "2026-00-01",
                "2026-04-31",
                "2026-01-00",
                "+026-01-01",
                "2026-01-01x",
            ],
        );
    }

    #[test]
    fn dates_with_times() {
        assert_format(
            is_date_time,
            &[
                "2026-07-28T12:00:00Z",
                "2026-07-28t23:59:60.5z",
                "2026-07-28T12:00:00+05:30",
                "2026-07-28T12:00:00.123456-00:00",
            ],
            &[
                "",
                "2026-07-28",
                "2026-07-28T12:00:00",
                "2026-07-28T24:00:00Z",
                "2026-07-28T12:60:00Z",
                "2026-07-28T12:00:00.Z",
                "2026-07-28T12:00:00+5:30",
                "2026-07-28T12:00Z",
                "2026-02-30T12:00:00Z",
            ],
        );
    }

    proptest! {
        #[test]
        fn any_text_is_checked(text in any::<String>()) {
            for format in [is_email, is_uri, is_date, is_date_time] {
                format(&text);
            }
        }
    }
}
