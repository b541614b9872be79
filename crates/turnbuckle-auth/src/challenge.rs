//! `WWW-Authenticate` challenges: parsing and writing.

#[cfg(test)]
mod tests;

use std::fmt;

use crate::Scopes;

/// One challenge of a `WWW-Authenticate` header.
///
/// A header may hold several challenges, and there may be several headers. Names of schemes and parameters are compared
/// case-insensitively; if a parameter occurs twice, the first one counts.
///
/// ```
/// use turnbuckle_auth::Challenge;
///
/// let header = r#"Basic realm="old", Bearer scope="files:read", resource_metadata="https://example.com/.well-known/oauth-protected-resource""#;
/// let challenges = Challenge::parse(header)?;
///
/// let bearer = challenges.iter().find(|one| one.is_scheme("bearer")).expect("the header has one");
/// assert_eq!(bearer.parameter("scope"), Some("files:read"));
/// # Ok::<(), turnbuckle_auth::InvalidChallenge>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

/// Reason why a `WWW-Authenticate` header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidChallenge {
    /// The header is longer than [`Challenge::MAX_HEADER_BYTES`].
    TooLong,
    /// Syntax error.
    Syntax {
        /// Number of bytes that were parsed successfully.
        offset: usize,
    },
}

impl Challenge {
    /// Maximum length of a header, in bytes.
    pub const MAX_HEADER_BYTES: usize = 16 * 1024;

    /// Parses all challenges of a header.
    ///
    /// Accepts more than RFC 9110 allows, because servers send it: an unquoted value may contain a URL. The `token68`
    /// credentials that some schemes have instead of parameters are skipped; no scheme used by MCP has them.
    pub fn parse(header: &str) -> Result<Vec<Challenge>, InvalidChallenge> {
        parse_challenges(header)
    }

    /// Creates a `Bearer` challenge.
    pub fn bearer() -> Challenge {
        Challenge::new("Bearer")
    }

    /// Creates a `DPoP` challenge: the token must be bound to a key.
    pub fn dpop() -> Challenge {
        Challenge::new("DPoP")
    }

    fn new(scheme: &str) -> Challenge {
        Challenge {
            scheme: scheme.to_owned(),
            parameters: Vec::new(),
        }
    }

    /// Adds the URL of the protected resource metadata.
    #[must_use]
    pub fn resource_metadata(self, url: &str) -> Challenge {
        self.with_parameter("resource_metadata", url)
    }

    /// Adds all scopes that the token must have; adds nothing if `scopes` is empty.
    #[must_use]
    pub fn scope(self, scopes: &Scopes) -> Challenge {
        if scopes.is_empty() {
            return self;
        }
        self.with_parameter("scope", &scopes.to_string())
    }

    /// Adds an error code such as `invalid_token` or `insufficient_scope`, and its description.
    #[must_use]
    pub fn error(self, code: &str, description: &str) -> Challenge {
        self.with_parameter("error", code)
            .with_parameter("error_description", description)
    }

    /// Adds a parameter. Characters that are not allowed in a header, such as line breaks, become spaces.
    #[must_use]
    pub fn with_parameter(mut self, name: &str, value: &str) -> Challenge {
        let safe = |character: char| if is_text(character) { character } else { ' ' };
        let value = value.chars().map(safe).collect();
        self.parameters.push((name.to_owned(), value));
        self
    }

    /// Returns whether the challenge has this scheme (case-insensitive).
    pub fn is_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the value of a parameter, unquoted.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// Formats the challenge as a header value; every parameter is quoted.
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
                    Challenge::MAX_HEADER_BYTES
                )
            }
            InvalidChallenge::Syntax { offset } => {
                write!(
                    f,
                    "`WWW-Authenticate` has a syntax error after {offset} bytes"
                )
            }
        }
    }
}

impl std::error::Error for InvalidChallenge {}

/// Returns whether a quoted string may contain the character: visible ASCII, space and tab.
fn is_text(character: char) -> bool {
    matches!(character, '\t' | ' '..='~')
}

fn parse_challenges(header: &str) -> Result<Vec<Challenge>, InvalidChallenge> {
    if header.len() > Challenge::MAX_HEADER_BYTES {
        return Err(InvalidChallenge::TooLong);
    }
    let mut parser = HeaderParser {
        whole: header.len(),
        rest: header,
    };
    let mut challenges: Vec<Challenge> = Vec::new();
    loop {
        parser.skip(&[' ', '\t', ',']);
        if parser.rest.is_empty() {
            return Ok(challenges);
        }
        let word = parser.token()?;
        match (parser.value()?, challenges.last_mut()) {
            (Some(value), Some(challenge)) => {
                challenge.parameters.push((word.to_owned(), value));
            }
            (Some(_), None) => return Err(parser.syntax_error()),
            (None, _) => {
                parser.skip_credentials();
                challenges.push(Challenge::new(word));
            }
        }
    }
}

struct HeaderParser<'a> {
    whole: usize,
    rest: &'a str,
}

impl<'a> HeaderParser<'a> {
    fn skip(&mut self, characters: &[char]) {
        self.rest = self.rest.trim_start_matches(characters);
    }

    /// Consumes the longest prefix that satisfies the predicate; may be empty.
    fn take(&mut self, is_accepted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|character| !is_accepted(character));
        let (taken, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn token(&mut self) -> Result<&'a str, InvalidChallenge> {
        match self.take(is_token) {
            "" => Err(self.syntax_error()),
            token => Ok(token),
        }
    }

    /// Consumes `=` and a value. Returns `None`, without consuming anything, if there is no `=`.
    fn value(&mut self) -> Result<Option<String>, InvalidChallenge> {
        let Some(rest) = self.rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            return Ok(None);
        };
        self.rest = rest;
        self.skip(&[' ', '\t']);
        if let Some(rest) = self.rest.strip_prefix('"') {
            self.rest = rest;
            return self.quoted().map(Some);
        }
        match self.take(|character| character.is_ascii_graphic() && !matches!(character, ',' | '"'))
        {
            "" => Err(self.syntax_error()),
            value => Ok(Some(value.to_owned())),
        }
    }

    /// Consumes the rest of a quoted string and its closing quote.
    fn quoted(&mut self) -> Result<String, InvalidChallenge> {
        let mut value = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(value);
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => value.push(character),
            }
        }
        // The closing quote is missing.
        Err(self.syntax_error())
    }

    /// Skips `token68` credentials such as the `YII=` of `Negotiate YII=`.
    fn skip_credentials(&mut self) {
        let before = self.rest;
        self.skip(&[' ', '\t']);
        self.take(|character| character.is_ascii_alphanumeric() || "-._~+/".contains(character));
        self.take(|character| character == '=');
        self.skip(&[' ', '\t']);
        if !self.rest.is_empty() && !self.rest.starts_with(',') {
            // It was a parameter name or the next scheme.
            self.rest = before;
        }
    }

    fn syntax_error(&self) -> InvalidChallenge {
        let offset = self.whole - self.rest.len();
        InvalidChallenge::Syntax { offset }
    }
}

fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}
