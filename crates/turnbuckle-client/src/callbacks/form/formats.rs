//! The formats that text in a form may have to have.

/// Says whether text looks like an address for mail: something, `@`, and the name of a host.
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

/// Says whether text is a URI with its scheme, in the characters of RFC 3986.
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

/// Says whether each character may stand in a URI, and each `%` begins two hexadecimal digits.
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

/// Says whether text is a day of the calendar, `2026-07-28`.
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

/// Says whether text is a time as RFC 3339 writes it, with its offset: `2026-07-28T12:00:00Z`.
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
    // A minute that is made longer has a second 60.
    let is_clock = numbers(whole, ':', [2, 2, 2])
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second <= 60);
    is_clock && !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_offset(text: &str) -> bool {
    let is_zero = text.eq_ignore_ascii_case("z");
    is_zero
        || numbers(&text[1..], ':', [2, 2]).is_some_and(|[hour, minute]| hour < 24 && minute < 60)
}

/// Reads numbers of so many digits each, with a character between them.
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
