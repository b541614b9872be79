//! Completion of prompt arguments and of variables in resource templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient_number::integer;
use crate::meta::Meta;

/// Parameters of `completion/complete`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompleteParams {
    /// The prompt or resource of the argument.
    #[serde(rename = "ref")]
    pub reference: CompletionReference,
    /// The argument to complete.
    pub argument: CompletionArgument,
    /// The other arguments (since 2025-06-18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<CompletionContext>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl CompleteParams {
    /// Requests completions of an argument.
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

/// The prompt or resource of an argument to complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum CompletionReference {
    /// A prompt, by name.
    #[serde(rename = "ref/prompt")]
    Prompt {
        /// The name of the prompt.
        name: String,
        /// The display name (since 2025-06-18).
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// A resource, by URI or URI template.
    #[serde(rename = "ref/resource")]
    Resource {
        /// The URI or URI template.
        uri: String,
    },
}

impl CompletionReference {
    /// References a prompt.
    pub fn prompt(name: impl Into<String>) -> Self {
        Self::Prompt {
            name: name.into(),
            title: None,
        }
    }

    /// References a resource or a resource template.
    pub fn resource(uri: impl Into<String>) -> Self {
        Self::Resource { uri: uri.into() }
    }
}

/// An argument to complete.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionArgument {
    /// The name.
    pub name: String,
    /// The partial value.
    pub value: String,
}

/// The other arguments of a completion request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CompletionContext {
    /// Arguments with known values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<BTreeMap<String, String>>,
}

impl CompletionContext {
    /// Creates an empty context.
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
    /// The `_meta` object.
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
    /// The suggestions, best first, at most [`Completion::MAX_VALUES`].
    pub values: Vec<String>,
    /// The total number of suggestions.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub total: Option<u64>,
    /// Set if there are more suggestions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
}

impl Completion {
    /// The maximum number of suggestions in a result.
    pub const MAX_VALUES: usize = 100;

    /// Creates suggestions; above [`Completion::MAX_VALUES`] they are truncated, and `total` and `hasMore` are set.
    pub fn new(values: impl Into<Vec<String>>) -> Self {
        let mut values = values.into();
        let all = values.len();
        let mut completion = Self::default();
        if all > Self::MAX_VALUES {
            values.truncate(Self::MAX_VALUES);
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
