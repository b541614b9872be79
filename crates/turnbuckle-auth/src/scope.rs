//! Scopes: a set of names, written with spaces between them.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A set of scopes, as in the `scope` of a challenge, a request or a token.
///
/// Order and repetition are ignored.
///
/// ```
/// use turnbuckle_auth::Scopes;
///
/// let granted: Scopes = "files:read files:write".parse()?;
/// let needed: Scopes = "files:write".parse()?;
///
/// assert!(granted.covers(&needed));
/// assert_eq!(needed.union(&"admin".parse()?).to_string(), "admin files:write");
/// # Ok::<(), turnbuckle_auth::InvalidScope>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes {
    names: BTreeSet<String>,
}

/// A scope contains a character that is not allowed: a control character, a quote, a backslash or non-ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidScope;

impl Scopes {
    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether the set contains the scope.
    pub fn contains(&self, scope: &str) -> bool {
        self.names.contains(scope)
    }

    /// Returns whether the set contains all of `needed`.
    pub fn covers(&self, needed: &Scopes) -> bool {
        needed.names.is_subset(&self.names)
    }

    /// Returns the scopes of both sets: the ones to request when a token has too few.
    #[must_use]
    pub fn union(&self, other: &Scopes) -> Scopes {
        let names = self.names.union(&other.names).cloned().collect();
        Scopes { names }
    }

    /// Iterates over the scopes in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

impl FromStr for Scopes {
    type Err = InvalidScope;

    /// Parses names separated by one or more spaces.
    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let names = text.split(' ').filter(|name| !name.is_empty());
        names.map(validate_name).collect()
    }
}

impl TryFrom<String> for Scopes {
    type Error = InvalidScope;

    fn try_from(text: String) -> Result<Self, InvalidScope> {
        text.parse()
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> String {
        scopes.to_string()
    }
}

impl FromIterator<String> for Scopes {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        let names = names.into_iter().collect();
        Scopes { names }
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{name}")?;
        }
        Ok(())
    }
}

impl fmt::Display for InvalidScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scope consists of visible ASCII characters without quotes and backslashes")
    }
}

impl std::error::Error for InvalidScope {}

/// Checks the characters of a scope (RFC 6749, section 3.3).
fn validate_name(name: &str) -> Result<String, InvalidScope> {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if name.bytes().all(is_allowed) {
        Ok(name.to_owned())
    } else {
        Err(InvalidScope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        text.parse().unwrap()
    }

    #[test]
    fn order_repetition_and_spaces_are_ignored() {
        assert_eq!(scopes("b a"), scopes(" a  b a "));
        assert_eq!(scopes("b a").to_string(), "a b");
        assert!(scopes("").is_empty());
    }

    #[test]
    fn a_superset_covers_a_subset() {
        assert!(scopes("a b c").covers(&scopes("c a")));
        assert!(scopes("a").covers(&scopes("")));
        assert!(!scopes("a").covers(&scopes("a b")));
        assert!(
            !scopes("files").covers(&scopes("files:read")),
            "not a prefix match"
        );
    }

    #[test]
    fn a_union_has_the_scopes_of_both() {
        assert_eq!(scopes("a b").union(&scopes("b c")), scopes("a b c"));
    }

    #[test]
    fn characters_invalid_in_a_header_are_rejected() {
        for text in ["a\"b", "a\\b", "a\nb", "ä", "a\tb", "\u{7f}"] {
            assert_eq!(text.parse::<Scopes>(), Err(InvalidScope), "{text:?}");
        }
    }
}
