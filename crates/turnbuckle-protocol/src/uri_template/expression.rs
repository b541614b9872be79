//! The parts of a template.

/// A literal and the expressions that directly follow it.
///
/// Only the literal of the first segment may be empty, and only the last segment may lack expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// As it appears in a URI, so ASCII.
    pub(super) literal: String,
    pub(super) expressions: Vec<TemplateExpression>,
}

/// The content between two braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateExpression {
    pub(super) operator: TemplateOperator,
    /// At least one.
    pub(super) variables: Vec<TemplateVariable>,
}

impl TemplateExpression {
    /// Returns the minimum length in a URI, in bytes, unless absent: a sigil, and one byte of a value or name.
    pub(super) fn min_length(&self) -> usize {
        1 + usize::from(self.operator.sigil().is_some())
    }
}

/// One variable of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TemplateVariable {
    pub(super) name: String,
    pub(super) modifier: VariableModifier,
}

impl TemplateVariable {
    pub(super) fn is_exploded(&self) -> bool {
        self.modifier == VariableModifier::Explode
    }

    /// Returns the maximum number of characters of the value.
    pub(super) fn max_chars(&self) -> usize {
        match self.modifier {
            VariableModifier::Prefix(length) => length.into(),
            VariableModifier::Whole | VariableModifier::Explode => usize::MAX,
        }
    }
}

/// The part of a value that is expanded, and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableModifier {
    /// `{a}`
    Whole,
    /// `{a:3}`
    Prefix(u16),
    /// `{a*}`
    Explode,
}

/// The operator of an expression, which determines its form in a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TemplateOperator {
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

impl TemplateOperator {
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

    /// Returns whether values are written with the names of their variables.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::Continuation)
    }

    /// Returns whether reserved characters are not encoded.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}
