//! URI templates (RFC 6570): expansion and matching.
//!
//! A client expands a template to the URI of one resource; a server matches a URI to find the resource. Expansion
//! follows the RFC, for strings and lists. Matching is not defined by the RFC; these are the rules:
//!
//! - **End of a variable.** A variable ends at the first occurrence of the literal that follows it; if the template
//!   ends with that literal, at its last occurrence. The first character of an operator (`#`, `.`, `/`, `;`, `?`,
//!   `&`) ends the previous expression in the same way. Matching does not backtrack, so the time is linear in the length
//!   of the URI.
//! - **Contents of a variable.** At least one character. `{a}`, `{.a}` and `{/a}` match none of `/ ? # & ,`; `{+a}`
//!   and `{#a}` match anything. `{a:3}` matches at most three characters.
//! - **Optional variables.** The named variables of `{;a}`, `{?a}` and `{&a}` may come in any order, may be empty,
//!   and are omitted from the result if absent. A name that is not in the template does not match, nor does a
//!   repeated name unless it is exploded. All other variables are required.
//! - **Several variables in one expression.** `{a,b}` are separated by the separator of their operator; the last or
//!   the exploded one gets the rest.
//! - **Lists.** The value of an exploded variable is its items joined by commas. A comma that is already in the URI
//!   counts.
//! - **Repeated names** must have the same value; a prefix must be the start of the whole value.
//! - **Encoding.** Values are percent-decoded once. An invalid escape or invalid UTF-8 does not match. Literals are
//!   compared byte by byte, in the form that expansion produces.
//!
//! A decoded value may contain anything, including `../` and NUL (`%2E%2E%2F`): check it before using it as a path.

use std::{collections::BTreeMap, fmt, str::FromStr};

use expression::Segment;

mod expand;
mod expression;
mod matching;
mod parse;
mod percent;

pub use expand::{TemplateVariables, VariableValue};

/// A parsed URI template.
///
/// ```
/// use turnbuckle_protocol::uri_template::{UriTemplate, TemplateVariables};
///
/// let template = UriTemplate::parse("notes://{owner}/{+path}{?revision}")?;
/// let variables = TemplateVariables::from([("owner", "ann"), ("path", "a/b c.md")]);
/// let uri = template.expand(&variables);
/// assert_eq!(uri, "notes://ann/a/b%20c.md");
///
/// let found = template.matches(&uri).expect("the template gave this URI");
/// assert_eq!(found["path"], "a/b c.md");
/// assert_eq!(found.get("revision"), None);
/// # Ok::<(), turnbuckle_protocol::uri_template::UriTemplateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    source: String,
    segments: Vec<Segment>,
    names: Vec<String>,
    /// Set if the template is unambiguous.
    matchable: bool,
}

impl UriTemplate {
    /// The maximum length of a template, in bytes.
    pub const MAX_LENGTH: usize = 8 * 1024;
    /// The maximum number of expressions.
    pub const MAX_EXPRESSIONS: usize = 64;
    /// The maximum number of variables, including repeated ones.
    pub const MAX_VARIABLES: usize = 128;

    /// Parses a template that can be expanded and matched.
    ///
    /// Rejects templates that the RFC does not allow, and those that cannot be matched unambiguously: `{a}{b}`,
    /// `{/a*}{/b}`, `{a*,b*}`, `{?a}{&b}` (write `{?a,b}`). If an operator follows, as in `{a}{.b}` or `{+a}{?b}`,
    /// the first variable ends at the first occurrence of its character.
    pub fn parse(template: &str) -> Result<Self, UriTemplateError> {
        let parsed = parse::template(template)?;
        match parsed.ambiguity {
            Some(ambiguity) => Err(ambiguity),
            None => Ok(parsed.template),
        }
    }

    /// Parses a template for expansion only.
    ///
    /// For clients, because a server may advertise `{a}{b}`. An ambiguous template matches nothing.
    pub fn parse_for_expansion(template: &str) -> Result<Self, UriTemplateError> {
        parse::template(template).map(|parsed| parsed.template)
    }

    /// Returns the source of the template.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the names of the variables in order, without duplicates.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the number of literal bytes.
    ///
    /// Of several templates that match a URI, the one with the most literal bytes is the most specific.
    pub fn specificity(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.literal.len())
            .sum()
    }

    /// Returns the URI for these variables.
    ///
    /// A variable without a value, or with an empty list, is omitted. A prefix length is ignored for a list.
    pub fn expand(&self, variables: &TemplateVariables) -> String {
        expand::segments(&self.segments, variables)
    }

    /// Returns the decoded variables of a URI, or `None` if it does not match.
    ///
    /// See the [module](self) for the rules. The time is linear in the length of the URI.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if !self.matchable {
            return None;
        }
        matching::variables(&self.segments, uri).0
    }
}

impl FromStr for UriTemplate {
    type Err = UriTemplateError;

    fn from_str(template: &str) -> Result<Self, Self::Err> {
        Self::parse(template)
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// The reason why a URI template is invalid.
///
/// `at` is a byte offset in the template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriTemplateError {
    /// The template is too long.
    #[error("the template has {length} bytes, more than {limit}", limit = UriTemplate::MAX_LENGTH)]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The template has too many expressions.
    #[error("expression at byte {at} is one more than the {limit} allowed", limit = UriTemplate::MAX_EXPRESSIONS)]
    TooManyExpressions {
        /// The offset of the first expression above the limit.
        at: usize,
    },
    /// The template has too many variables.
    #[error("variable at byte {at} is one more than the {limit} allowed", limit = UriTemplate::MAX_VARIABLES)]
    TooManyVariables {
        /// The offset of the first variable above the limit.
        at: usize,
    },
    /// A character that is not allowed outside of an expression.
    #[error("{character:?} at byte {at} must be percent-encoded")]
    Literal {
        /// The character.
        character: char,
        /// The offset of the character.
        at: usize,
    },
    /// An expression is not closed.
    #[error("`{{` at byte {at} has no `}}`")]
    Unclosed {
        /// The offset of the opening brace.
        at: usize,
    },
    /// A closing brace without an opening one.
    #[error("`}}` at byte {at} has no `{{`")]
    Unopened {
        /// The offset of the brace.
        at: usize,
    },
    /// An operator that the RFC reserves.
    #[error("operator `{operator}` at byte {at} is reserved")]
    Operator {
        /// The operator.
        operator: char,
        /// The offset of the operator.
        at: usize,
    },
    /// A variable name that is empty or contains an invalid character.
    #[error(
        "{name:?} at byte {at} is not a variable name: use letters, digits, `_`, `%xx` and inner dots"
    )]
    Name {
        /// The name.
        name: String,
        /// The offset of the name.
        at: usize,
    },
    /// The length of a prefix is not a number from 1 to 9999.
    #[error("prefix length {length:?} at byte {at} is not a number from 1 to 9999")]
    Prefix {
        /// The text of the length.
        length: String,
        /// The offset of the length.
        at: usize,
    },
    /// Two adjacent variables without a delimiter between them.
    #[error("no delimiter between `{first}` and `{second}` (byte {at})")]
    Adjacent {
        /// The first variable.
        first: String,
        /// The second variable.
        second: String,
        /// The offset of the second variable, or of its expression if it has its own.
        at: usize,
    },
}

#[cfg(test)]
mod tests;
