//! The few colours we use.

use anstyle::{AnsiColor, Style};

/// The word `error`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word `warning`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The word `hint`.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// The name of a thing.
pub(crate) const NAME: Style = Style::new().bold();
/// A type, or another word of a schema.
pub(crate) const TYPE: Style = AnsiColor::Green.on_default();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The head of a table.
pub(crate) const HEAD: Style = Style::new().underline();

/// Returns text in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{style}{text}{style:#}")
}

/// Returns text without its styles.
pub(crate) fn without(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
