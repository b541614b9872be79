//! The parts of a template.

/// A literal and the expressions that directly follow it.
///
/// Only the literal of the first run may be empty, and only the last run may have no expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    /// As it appears in a URI, hence ASCII.
    pub(super) literal: String,
    pub(super) expressions: Vec<Expression>,
}

/// What stands between two braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) operator: Operator,
    /// At least one.
    pub(super) variables: Vec<Variable>,
}

impl Expression {
    /// Returns how many bytes it takes at least in a URI, unless it is missing: a sigil, and one of a value or name.
    pub(super) fn shortest(&self) -> usize {
        1 + usize::from(self.operator.sigil().is_some())
    }
}

/// One variable of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) modifier: Modifier,
}

impl Variable {
    pub(super) fn is_exploded(&self) -> bool {
        self.modifier == Modifier::Explode
    }

    /// Returns how many characters of the value there are at most.
    pub(super) fn longest(&self) -> usize {
        match self.modifier {
            Modifier::Prefix(length) => length.into(),
            Modifier::Whole | Modifier::Explode => usize::MAX,
        }
    }
}

/// How much of a value is meant, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    /// `{a}`
    Whole,
    /// `{a:3}`
    Prefix(u16),
    /// `{a*}`
    Explode,
}

/// What an expression begins with, and so how it looks in a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `{a}`
    Simple,
    /// `{+a}`
    Reserved,
    /// `{#a}`
    Fragment,
    /// `{.a}`
    Label,
    /// `{/a}`
    Path,
    /// `{;a}`
    Parameter,
    /// `{?a}`
    Query,
    /// `{&a}`
    Continuation,
}

impl Operator {
    /// Returns the character that comes before the first value.
    pub(super) fn sigil(self) -> Option<char> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some('#'),
            Self::Label => Some('.'),
            Self::Path => Some('/'),
            Self::Parameter => Some(';'),
            Self::Query => Some('?'),
            Self::Continuation => Some('&'),
        }
    }

    /// Returns the character between two variables, and between the items of an exploded one.
    pub(super) fn separator(self) -> char {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ',',
            Self::Label => '.',
            Self::Path => '/',
            Self::Parameter => ';',
            Self::Query | Self::Continuation => '&',
        }
    }

    /// Says whether values come with the name of their variable.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Says whether reserved characters stand for themselves.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}
