//! The styles of the output.

use anstyle::{AnsiColor, Style};

/// The label `error`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The label `warning`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// The label `hint`.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// A name.
pub(crate) const NAME: Style = Style::new().bold();
/// A type of a schema.
pub(crate) const TYPE: Style = AnsiColor::Green.on_default();
/// Secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The header of a table.
pub(crate) const HEAD: Style = Style::new().underline();

/// Returns text in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{style}{text}{style:#}")
}

/// Returns text without its styles.
pub(crate) fn strip(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
