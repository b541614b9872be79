//! Sanitizing, URLs, percent-encoding, string formats and secrets: one copy of each, for all turnbuckle crates.
//!
//! - [`sanitize`]: makes text of a peer safe to print on a terminal.
//! - [`url`]: hosts, ports and `http` URLs, parsed strictly and compared as written.
//! - [`percent`]: percent-encoding and `application/x-www-form-urlencoded`.
//! - [`formats`]: the string formats of forms (`email`, `uri`, `date`, `date-time`).
//! - [`shell`]: quoting of command-line arguments.
//! - [`Secret`]: a text that prints as `***`.
//!
//! Pure functions: no I/O, no clock, no environment.

pub mod formats;
pub mod percent;
pub mod sanitize;
mod secret;
pub mod shell;
pub mod url;

pub use secret::Secret;
