//! Completion of prompt arguments and of variables in resource templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{number::integer, setters::setters};
use crate::meta::Meta;

/// Parameters of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteParams {
    /// What the argument belongs to.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument, as far as it is typed.
    pub argument: CompletionArgument,
    /// What else is known already (since 2025-06-18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Asks how an argument could go on.
    pub fn new(
        reference: CompletionReference,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self {
            reference,
            argument: CompletionArgument {
                name: name.into(),
                value: value.into(),
            },
            context: None,
            meta: Meta::default(),
        }
    }
}

setters!(CompleteParams {
    optional { context: CompletionContext }
    plain { meta: Meta }
});

/// What a completed argument belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// A prompt, by name.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name of the prompt.
        name: String,
        /// Its name for people (since 2025-06-18).
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource, by address or template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The address or template.
        uri: String,
    },
}

impl CompletionReference {
    /// Refers to a prompt.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt {
            name: name.into(),
            title: None,
        }
    }

    /// Refers to a resource or a template.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// An argument, as far as it is typed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionArgument {
    /// Its name.
    pub name: String,
    /// What is typed so far.
    pub value: String,
}

/// What is known besides the argument being typed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionContext {
    /// Arguments that have their value already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl CompletionContext {
    /// Creates a context that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(CompletionContext { optional { arguments: BTreeMap<String, String> } });

/// The result of `completion/complete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteResult {
    /// The suggestions.
    pub completion: Completion,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CompleteResult {
    /// Creates a result from suggestions.
    pub fn new(completion: impl Into<Completion>) -> Self {
        Self {
            completion: completion.into(),
            meta: Meta::default(),
        }
    }
}

setters!(CompleteResult { plain { meta: Meta } });

/// Suggestions for an argument.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// The suggestions, best first, at most [`Completion::MAX`].
    pub values: Vec<String>,
    /// How many there are in all.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub total: Option<u64>,
    /// Whether there are more than these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// How many suggestions one answer may hold.
    pub const MAX: usize = 100;

    /// Creates an answer; beyond [`Completion::MAX`] values the rest is cut off and `total` and `hasMore` say so.
    pub fn new(values: impl Into<Vec<String>>) -> Self {
        let mut values = values.into();
        let all = values.len();
        let mut completion = Self::default();
        if all > Self::MAX {
            values.truncate(Self::MAX);
            completion.total = Some(all as u64);
            completion.has_more = Some(true);
        }
        completion.values = values;
        completion
    }
}

setters!(Completion { optional { total: u64, has_more: bool } });

impl<T: Into<Vec<String>>> From<T> for Completion {
    fn from(values: T) -> Self {
        Self::new(values)
    }
}
