//! Annotations and icons: hints about how to present an item.

use serde::{Deserialize, Deserializer, Serialize};

use super::lenient_number;

/// The sender or the audience of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, or a program that acts for the user.
    User,
    /// The model.
    Assistant,
}

/// Hints that a client may use when it shows or selects content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Annotations {
    /// The intended audience.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// The importance, from 0 (optional) to 1 (required).
    #[serde(
        default,
        serialize_with = "lenient_number::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub priority: Option<f64>,
    /// The time of the last change, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Annotations {
    /// Creates empty annotations.
    pub fn new() -> Self {
        Self::default()
    }
}

setters!(Annotations {
    optional {
        audience: Vec<Role>,
        priority: f64,
        last_modified: String,
    }
});

/// An icon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The `https:` or `data:` URI of the image.
    pub src: String,
    /// The media type, if the URI does not imply it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes, such as `48x48`, or `any` for a scalable image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background that the icon is designed for.
    #[serde(
        default,
        deserialize_with = "known_theme",
        skip_serializing_if = "Option::is_none"
    )]
    pub theme: Option<IconTheme>,
}

/// The background that an icon is designed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IconTheme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Icon {
    /// Creates an icon from its URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self {
            src: src.into(),
            mime_type: None,
            sizes: None,
            theme: None,
        }
    }
}

setters!(Icon {
    optional {
        mime_type: String,
        sizes: Vec<String>,
        theme: IconTheme,
    }
});

// An unknown theme must not invalidate the list of tools that contains it.
fn known_theme<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IconTheme>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(match name.as_deref() {
        Some("light") => Some(IconTheme::Light),
        Some("dark") => Some(IconTheme::Dark),
        _ => None,
    })
}
