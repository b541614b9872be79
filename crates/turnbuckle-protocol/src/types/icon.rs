//! Pictures that stand for something in a user interface.

use serde::{Deserialize, Deserializer, Serialize};

use super::setters::setters;

/// An icon, by its address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// An `https:` or `data:` address of the picture.
    pub src: String,
    /// Its media type, when the address does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its sizes, such as `48x48`, or `any` for a scalable picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background it is drawn for.
    #[serde(
        default,
        deserialize_with = "known_theme",
        skip_serializing_if = "Option::is_none"
    )]
    pub theme: Option<IconTheme>,
}

/// The background an icon is drawn for.
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
    /// Creates an icon from its address.
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

// An unknown theme is no reason to refuse the list of tools that carries it.
fn known_theme<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IconTheme>, D::Error> {
    let name = Option::<String>::deserialize(deserializer)?;
    Ok(match name.as_deref() {
        Some("light") => Some(IconTheme::Light),
        Some("dark") => Some(IconTheme::Dark),
        _ => None,
    })
}
