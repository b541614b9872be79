//! String, number and boolean fields of a form.

use serde::{Deserialize, Serialize};

use crate::types::{lenient_number, lenient_number::integer};

/// A string field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StringSchema {
    #[serde(rename = "type")]
    kind: StringKind,
    /// The label of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum number of characters.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub min_length: Option<u64>,
    /// The maximum number of characters.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub max_length: Option<u64>,
    /// The format of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<StringFormat>,
    /// The default value (since 2025-11-25).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl StringSchema {
    /// Creates a string field.
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

/// The format of a string field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StringFormat {
    /// An email address.
    Email,
    /// A URI.
    Uri,
    /// A date.
    Date,
    /// A date with time.
    DateTime,
}

/// A number field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NumberSchema {
    /// Number or integer.
    #[serde(rename = "type")]
    pub kind: NumberKind,
    /// The label of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The minimum.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub minimum: Option<f64>,
    /// The maximum.
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub maximum: Option<f64>,
    /// The default value (since 2025-11-25).
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub default: Option<f64>,
}

impl NumberSchema {
    /// Creates a number field.
    pub fn new() -> Self {
        Default::default()
    }

    /// Creates an integer field.
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

/// The type of a number field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberKind {
    /// Any number.
    #[default]
    Number,
    /// A whole number.
    Integer,
}

/// A boolean field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BooleanSchema {
    #[serde(rename = "type")]
    kind: BooleanKind,
    /// The label of the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The default value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

impl BooleanSchema {
    /// Creates a boolean field.
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

/// The only value of `type` in a string field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StringKind {
    #[default]
    String,
}

/// The only value of `type` in a boolean field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BooleanKind {
    #[default]
    Boolean,
}
