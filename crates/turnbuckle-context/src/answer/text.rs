//! Text that fits on a line.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

/// The beginning of a text, at most so many characters; a longer one ends with `…`.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some(_) => {
            let kept: String = text.chars().take(most.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end()).into()
        }
    }
}

/// A text on one line, at most so many characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    // Words are taken only as far as they can be shown: a text may have a hundred thousand of them.
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
    cut(&line, most).into_owned()
}

/// `1 file`, `2 files`.
pub(crate) fn plural(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

/// A time in milliseconds since 1970 as RFC 3339 writes it.
pub(crate) fn time(milliseconds: i64) -> String {
    let since = Duration::from_millis(milliseconds.max(0).unsigned_abs());
    // The format ends with the year 9999; a row that claims more is shown as the last second of it.
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since.min(LAST)).to_string()
}
