//! What a function can become.

/// What a function is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// What may follow a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// The key alone says it.
    Nothing,
    /// `= true` or `= false`; the key alone means `true`.
    YesOrNo,
    /// Any expression that becomes a `String`.
    Text,
    /// Any expression that the builder's method takes.
    Value,
    /// A text that is read while compiling.
    Literal,
    /// A text of words, which is read while compiling.
    Words,
    /// The path of a crate.
    Path,
}

impl Kind {
    /// The noun of messages, and the name of the macro.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// The keys it knows. Those of hints and texts are methods of the builder with the same names.
    pub(crate) fn keys(self) -> &'static [(&'static str, Takes)] {
        match self {
            Self::Tool => &[
                ("name", Takes::Text),
                ("title", Takes::Text),
                ("description", Takes::Text),
                ("read_only", Takes::Nothing),
                ("destructive", Takes::YesOrNo),
                ("idempotent", Takes::Nothing),
                ("open_world", Takes::YesOrNo),
                ("task", Takes::Text),
                ("asks_first", Takes::Nothing),
                ("visible_to", Takes::Value),
                ("scopes", Takes::Words),
                ("blocking", Takes::Nothing),
                ("crate", Takes::Path),
            ],
            Self::Prompt => &[
                ("name", Takes::Text),
                ("title", Takes::Text),
                ("description", Takes::Text),
                ("visible_to", Takes::Value),
                ("scopes", Takes::Words),
                ("crate", Takes::Path),
            ],
            Self::Resource => &[
                ("uri", Takes::Literal),
                ("name", Takes::Text),
                ("title", Takes::Text),
                ("description", Takes::Text),
                ("mime_type", Takes::Text),
                ("visible_to", Takes::Value),
                ("scopes", Takes::Words),
                ("crate", Takes::Path),
            ],
        }
    }
}
