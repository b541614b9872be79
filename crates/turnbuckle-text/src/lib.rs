//! Sanitizing, URLs, percent-encoding, string formats, similar names and secrets: one copy of each, for all turnbuckle crates.
//!
//! - [`sanitize`]: makes text of a peer safe to print on a terminal.
//! - [`url`]: hosts, ports and `http` URLs, parsed strictly and compared as written.
//! - [`percent`]: percent-encoding and `application/x-www-form-urlencoded`.
//! - [`formats`]: the string formats of forms (`email`, `uri`, `date`, `date-time`).
//! - [`shell`]: quoting of command-line arguments.
//! - `suggestions`, a feature: names that are similar to an unknown one.
//! - [`Secret`]: a text that prints as `***`.
//! - [`error_chain`]: the text of an error and its sources.
//!
//! Pure functions: no I/O, no clock, no environment.

pub mod formats;
pub mod percent;
pub mod sanitize;
mod secret;
pub mod shell;
#[cfg(feature = "suggestions")]
pub mod suggestions;
pub mod url;

pub use secret::Secret;

/// Returns the text of an error, followed by those of its sources.
///
/// The text of a source that the text above it already contains is left out.
///
/// ```
/// use std::io;
///
/// let cause = io::Error::other("the disk is full");
/// let error = io::Error::other(cause);
///
/// assert_eq!(turnbuckle_text::error_chain(&error), "the disk is full");
/// ```
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let source_text = error.to_string();
        if !text.ends_with(&source_text) {
            text = format!("{text}: {source_text}");
        }
        source = error.source();
    }
    text
}
