//! What tells an error from others, whatever its line numbers, addresses and paths are this time.

/// What an error message shows of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Patterns {
    /// `file:line` as far as they are named, without the folders.
    pub places: Vec<String>,
    /// Codes such as `E0308`, `TS2345`, `ECONNREFUSED`, `HTTP 404`.
    pub codes: Vec<String>,
    /// Names of exceptions such as `ValueError` or `NullPointerException`.
    pub exceptions: Vec<String>,
}

/// Finds what an error message shows of itself.
pub fn patterns(error: &str) -> Patterns {
    let _ = error;
    Patterns::default()
}
