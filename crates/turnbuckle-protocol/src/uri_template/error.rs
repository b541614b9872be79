//! Why a template is refused.

use super::UriTemplate;

/// Why a URI template cannot be used.
///
/// `at` is a position in the template, in bytes from its start.
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
        /// The first one too many.
        at: usize,
    },
    /// The template has too many variables.
    #[error("variable at byte {at} is one more than the {limit} allowed", limit = UriTemplate::MAX_VARIABLES)]
    TooManyVariables {
        /// The first one too many.
        at: usize,
    },
    /// A character that a URI template may not have outside of an expression.
    #[error("{character:?} at byte {at} must be percent-encoded")]
    Literal {
        /// The character.
        character: char,
        /// Where it stands.
        at: usize,
    },
    /// An expression is not closed.
    #[error("`{{` at byte {at} has no `}}`")]
    Unclosed {
        /// Where it opens.
        at: usize,
    },
    /// A brace closes nothing.
    #[error("`}}` at byte {at} has no `{{`")]
    Unopened {
        /// Where it stands.
        at: usize,
    },
    /// An operator that the RFC keeps for later.
    #[error("operator `{operator}` at byte {at} is reserved")]
    Operator {
        /// The operator.
        operator: char,
        /// Where it stands.
        at: usize,
    },
    /// A name that is empty or has a character it may not have.
    #[error(
        "{name:?} at byte {at} is not a variable name: letters, digits, `_`, `%xx` and inner dots are"
    )]
    Name {
        /// What stands there.
        name: String,
        /// Where it begins.
        at: usize,
    },
    /// The length of a prefix is not a number from 1 to 9999.
    #[error("prefix length {length:?} at byte {at} is not a number from 1 to 9999")]
    Prefix {
        /// What stands there.
        length: String,
        /// Where it begins.
        at: usize,
    },
    /// Two variables follow each other so that no URI shows where one ends.
    #[error("nothing tells where `{first}` ends and `{second}` (byte {at}) begins")]
    Adjacent {
        /// The variable before.
        first: String,
        /// The variable after.
        second: String,
        /// Where the second begins; its expression, if that is another one.
        at: usize,
    },
}
