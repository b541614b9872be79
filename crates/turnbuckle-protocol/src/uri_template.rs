//! URI templates (RFC 6570), read in both directions.
//!
//! A client expands a template to the URI of one resource; a server matches a URI to learn which resource is meant.
//! Expansion is that of the RFC, for texts and lists. Matching is not in the RFC; these are our rules:
//!
//! - **Where a variable ends.** At the first occurrence of the literal that follows it; if the template ends with that
//!   literal, at its last. The character that an operator puts first (`#`, `.`, `/`, `;`, `?`, `&`) ends the
//!   expression before it in the same way. Nothing is tried twice, so the time is linear in the length of the URI.
//! - **What a variable holds.** At least one character. `{a}`, `{.a}` and `{/a}` hold none of `/ ? # & ,`; `{+a}` and
//!   `{#a}` hold anything. `{a:3}` holds at most three characters.
//! - **What may be missing.** The named variables of `{;a}`, `{?a}` and `{&a}`: they come in any order, may be empty,
//!   and are left out of the result if they are not there. A name that the template does not have is no match, nor is
//!   a name twice unless it is exploded. All other variables must be there.
//! - **Several in one expression.** `{a,b}` are told apart by the separator of their operator; the last takes what is
//!   left, or the exploded one does.
//! - **Lists.** An exploded variable gives its items joined by commas. A comma that is already in the URI counts.
//! - **The same name twice** has to have the same value; a prefix has to be the beginning of the whole.
//! - **Encoding.** Values are percent-decoded once. A broken escape or invalid UTF-8 is no match. Literals are compared
//!   byte by byte, in the form that expansion gives them.
//!
//! A decoded value is whatever the peer wrote, `../` and NUL included (`%2E%2E%2F`): whoever makes a path of it checks it.

mod error;
mod expand;
mod expression;
mod matching;
mod parse;
mod percent;
mod steps;
mod variables;

pub use error::UriTemplateError;
pub use variables::{Value, Variables};

use std::{collections::BTreeMap, fmt, str::FromStr};

use expression::Run;

/// A parsed URI template.
///
/// ```
/// use turnbuckle_protocol::uri_template::{UriTemplate, Variables};
///
/// let template = UriTemplate::parse("notes://{owner}/{+path}{?revision}")?;
/// let variables = Variables::from([("owner", "ann"), ("path", "a/b c.md")]);
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
    runs: Vec<Run>,
    names: Vec<String>,
    /// Nothing is ambiguous in it.
    matchable: bool,
}

impl UriTemplate {
    /// The longest template that is read, in bytes.
    pub const MAX_LENGTH: usize = 8 * 1024;
    /// How many expressions a template may have.
    pub const MAX_EXPRESSIONS: usize = 64;
    /// How many variables a template may have, repeated ones counted again.
    pub const MAX_VARIABLES: usize = 128;

    /// Parses a template that can be expanded and matched.
    ///
    /// Refuses what the RFC does not allow, and what no URI could be matched with for certain: `{a}{b}`, `{/a*}{/b}`,
    /// `{a*,b*}`, `{?a}{&b}` (write `{?a,b}`). Followed by an operator's character, as in `{a}{.b}` or `{+a}{?b}`, the
    /// first variable ends where that character first occurs.
    pub fn parse(template: &str) -> Result<Self, UriTemplateError> {
        let parsed = parse::template(template)?;
        match parsed.ambiguity {
            Some(ambiguity) => Err(ambiguity),
            None => Ok(parsed.template),
        }
    }

    /// Parses a template that is only to be expanded.
    ///
    /// For a client, whose server may well offer `{a}{b}`. If such a template is ambiguous, it matches nothing.
    pub fn parse_for_expansion(template: &str) -> Result<Self, UriTemplateError> {
        parse::template(template).map(|parsed| parsed.template)
    }

    /// Returns the template as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the names of its variables, each once, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the number of literal bytes.
    ///
    /// Of several templates that match a URI, the one with the most says most about it.
    pub fn specificity(&self) -> usize {
        self.runs.iter().map(|run| run.literal.len()).sum()
    }

    /// Returns the URI for these variables.
    ///
    /// A variable without a value, or with an empty list, is left out. The length of a prefix is ignored for a list.
    pub fn expand(&self, variables: &Variables) -> String {
        expand::runs(&self.runs, variables)
    }

    /// Returns the decoded variables of a URI, or `None` if it is not of this template.
    ///
    /// The rules are those of the [module](self). The time is linear in the length of the URI, whatever it holds.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if !self.matchable {
            return None;
        }
        matching::variables(&self.runs, uri).0
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

#[cfg(test)]
mod tests;
