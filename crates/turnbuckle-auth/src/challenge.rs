//! What a server that refuses says: the `WWW-Authenticate` header, read and written.

mod parse;

#[cfg(test)]
mod tests;

use std::fmt;

use crate::Scopes;

/// One challenge of a `WWW-Authenticate` header.
///
/// A header may hold several, and there may be several headers. Names of schemes and parameters are compared without regard
/// to case; of a parameter that is there twice, the first counts.
///
/// ```
/// use turnbuckle_auth::Challenge;
///
/// let header = r#"Basic realm="old", Bearer scope="files:read", resource_metadata="https://example.com/.well-known/oauth-protected-resource""#;
/// let challenges = Challenge::parse(header)?;
///
/// let bearer = challenges.iter().find(|one| one.is("bearer")).expect("it is there");
/// assert_eq!(bearer.parameter("scope"), Some("files:read"));
/// # Ok::<(), turnbuckle_auth::InvalidChallenge>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

/// Why a `WWW-Authenticate` header cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidChallenge {
    /// Longer than any server has reason to.
    TooLong,
    /// A character where none of its kind can be.
    Syntax {
        /// How many bytes were fine.
        at: usize,
    },
}

impl Challenge {
    /// The most bytes of a header that are read.
    pub const MOST_BYTES: usize = 16 * 1024;

    /// Reads every challenge of a header.
    ///
    /// More is read than RFC 9110 allows to be written, since servers write it: a value without quotes may hold a URL. The
    /// credentials that some schemes put in place of parameters are skipped; no scheme of MCP has them.
    pub fn parse(header: &str) -> Result<Vec<Challenge>, InvalidChallenge> {
        parse::challenges(header)
    }

    /// Begins a `Bearer` challenge.
    pub fn bearer() -> Challenge {
        Challenge::new("Bearer")
    }

    /// Begins a `DPoP` challenge: the token is to be bound to a key.
    pub fn dpop() -> Challenge {
        Challenge::new("DPoP")
    }

    fn new(scheme: &str) -> Challenge {
        Challenge {
            scheme: scheme.to_owned(),
            parameters: Vec::new(),
        }
    }

    /// Says where the metadata of the protected resource is.
    #[must_use]
    pub fn resource_metadata(self, url: &str) -> Challenge {
        self.with("resource_metadata", url)
    }

    /// Says what a token must be good for, all of it at once; no scopes say nothing.
    #[must_use]
    pub fn scope(self, scopes: &Scopes) -> Challenge {
        if scopes.is_empty() {
            return self;
        }
        self.with("scope", &scopes.to_string())
    }

    /// Says what was wrong with the token: `invalid_token`, `insufficient_scope`, …
    #[must_use]
    pub fn error(self, code: &str, description: &str) -> Challenge {
        self.with("error", code)
            .with("error_description", description)
    }

    /// Adds a parameter. What cannot stand in a header, such as a line break, becomes a space.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Challenge {
        let safe = |letter: char| if is_text(letter) { letter } else { ' ' };
        let value = value.chars().map(safe).collect();
        self.parameters.push((name.to_owned(), value));
        self
    }

    /// Says whether it is of this scheme, in any case.
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the value of a parameter, without its quotes.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// Writes it as the value of a header; every parameter in quotes.
impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            let comma = if at == 0 { " " } else { ", " };
            let value = value.replace('\\', r"\\").replace('"', "\\\"");
            write!(f, "{comma}{name}=\"{value}\"")?;
        }
        Ok(())
    }
}

impl fmt::Display for InvalidChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidChallenge::TooLong => {
                write!(
                    f,
                    "`WWW-Authenticate` is longer than {} bytes",
                    Challenge::MOST_BYTES
                )
            }
            InvalidChallenge::Syntax { at } => {
                write!(f, "`WWW-Authenticate` cannot be read after {at} bytes")
            }
        }
    }
}

impl std::error::Error for InvalidChallenge {}

/// Whether a quoted string of a header may hold it: ASCII that can be seen, spaces and tabs.
fn is_text(letter: char) -> bool {
    matches!(letter, '\t' | ' '..='~')
}
