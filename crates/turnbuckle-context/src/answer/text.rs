//! Formatting of text for responses.

use std::{
    borrow::Cow,
    time::{Duration, UNIX_EPOCH},
};

/// Truncates a text to a maximum number of characters; a truncated text ends with `…`.
pub(crate) fn truncate(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some(_) => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end()).into()
        }
    }
}

/// Returns a text on one line, truncated to a maximum number of characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Stop collecting words once the line is full: a text may have a hundred thousand words.
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > most * 4 {
            break;
        }
    }
    truncate(&line, most).into_owned()
}

/// Formats a count with a noun: `1 file`, `2 files`.
pub(crate) fn plural(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// Formats milliseconds since 1970 as RFC 3339.
pub(crate) fn format_time(milliseconds: i64) -> String {
    let since = Duration::from_millis(milliseconds.max(0).unsigned_abs());
    // RFC 3339 ends with the year 9999; later times are clamped to its last second.
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since.min(LAST)).to_string()
}
