//! The contents of a resource: text or bytes.

use serde::{Deserialize, Serialize};

use crate::meta::Meta;

/// The contents of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Contents")]
pub enum ResourceContents {
    /// Text.
    Text(TextResourceContents),
    /// Bytes.
    Blob(BlobResourceContents),
}

impl ResourceContents {
    /// Creates text contents.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        TextResourceContents::new(uri, text).into()
    }

    /// Creates binary contents from Base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        BlobResourceContents::new(uri, blob).into()
    }

    /// Returns the URI.
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }

    /// Returns the media type.
    pub fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Text(contents) => contents.mime_type.as_deref(),
            Self::Blob(contents) => contents.mime_type.as_deref(),
        }
    }

    /// Returns `_meta` for modification.
    pub fn meta_mut(&mut self) -> &mut Meta {
        match self {
            Self::Text(contents) => &mut contents.meta,
            Self::Blob(contents) => &mut contents.meta,
        }
    }
}

impl From<TextResourceContents> for ResourceContents {
    fn from(contents: TextResourceContents) -> Self {
        Self::Text(contents)
    }
}

impl From<BlobResourceContents> for ResourceContents {
    fn from(contents: BlobResourceContents) -> Self {
        Self::Blob(contents)
    }
}

/// Text contents of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextResourceContents {
    /// The URI.
    pub uri: String,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    pub text: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl TextResourceContents {
    /// Creates text contents.
    pub fn new(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            text: text.into(),
            meta: Meta::default(),
        }
    }
}

setters!(TextResourceContents {
    optional { mime_type: String }
    plain { meta: Meta }
});

/// Binary contents of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BlobResourceContents {
    /// The URI.
    pub uri: String,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The bytes in Base64.
    pub blob: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl BlobResourceContents {
    /// Creates binary contents from Base64.
    pub fn new(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            mime_type: None,
            blob: blob.into(),
            meta: Meta::default(),
        }
    }
}

setters!(BlobResourceContents {
    optional { mime_type: String }
    plain { meta: Meta }
});

/// Both kinds of contents, for deserialization.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Contents {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

impl TryFrom<Contents> for ResourceContents {
    type Error = &'static str;

    fn try_from(contents: Contents) -> Result<Self, Self::Error> {
        let Contents {
            uri,
            mime_type,
            text,
            blob,
            meta,
        } = contents;
        match (text, blob) {
            (Some(text), _) => Ok(Self::Text(TextResourceContents {
                uri,
                mime_type,
                text,
                meta,
            })),
            (None, Some(blob)) => Ok(Self::Blob(BlobResourceContents {
                uri,
                mime_type,
                blob,
                meta,
            })),
            (None, None) => Err("resource contents need `text` or `blob`"),
        }
    }
}
