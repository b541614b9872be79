//! Fields of a form that take text, a number, or yes and no.

use serde::{Deserialize, Serialize};

use crate::types::{number, number::integer, setters::setters};

/// A field for text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StringSchema {
    #[serde(rename = "type")]
    kind: StringKind,
    /// The label of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to fill in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least number of characters.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub min_length: Option<u64>,
    /// The greatest number of characters.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_length: Option<u64>,
    /// What the text has to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// What is filled in already (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl StringSchema {
    /// Creates a field for any text.
    pub fn new() -> Self {
        Default::default()
    }
}

setters!(StringSchema {
    optional {
        title: String,
        description: String,
        min_length: u64,
        max_length: u64,
        format: StringFormat,
        default: String,
    }
});

/// What text in a form has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StringFormat {
    /// An address for mail.
    Email,
    /// A URI.
    Uri,
    /// A date.
    Date,
    /// A date with time.
    DateTime,
}

/// A field for a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NumberSchema {
    /// Whether fractions are allowed.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// The label of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to fill in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The least number.
    #[serde(
        default,
        serialize_with = "number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub minimum: Option<f64>,
    /// The greatest number.
    #[serde(
        default,
        serialize_with = "number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub maximum: Option<f64>,
    /// What is filled in already (since 2025-11-25).
    #[serde(
        default,
        serialize_with = "number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub default: Option<f64>,
}

impl NumberSchema {
    /// Creates a field for any number.
    pub fn new() -> Self {
        Default::default()
    }

    /// Creates a field for an integer.
    pub fn integer() -> Self {
        Self {
            kind: NumberKind::Integer,
            ..Default::default()
        }
    }
}

setters!(NumberSchema {
    optional {
        title: String,
        description: String,
        minimum: f64,
        maximum: f64,
        default: f64,
    }
});

/// Whether a number may have a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// A whole number.
    Integer,
}

/// A field for yes or no.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BooleanSchema {
    #[serde(rename = "type")]
    kind: BooleanKind,
    /// The label of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is chosen already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

impl BooleanSchema {
    /// Creates a field for yes or no.
    pub fn new() -> Self {
        Default::default()
    }
}

setters!(BooleanSchema {
    optional {
        title: String,
        description: String,
        default: bool,
    }
});

/// The one value of `type` in a text field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StringKind {
    #[default]
    String,
}

/// The one value of `type` in a yes-or-no field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BooleanKind {
    #[default]
    Boolean,
}
