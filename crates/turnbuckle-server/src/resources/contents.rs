//! The contents of a resource.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use turnbuckle_protocol::types::{ReadResourceResult, ResourceContents};

/// The contents of a resource: one or more texts or blobs.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    parts: Vec<ContentsPart>,
}

#[derive(Debug, Clone)]
enum ContentsPart {
    Text(String),
    Blob(Bytes),
    Ready(ResourceContents),
}

impl Contents {
    /// Creates contents with explicit URIs.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        Self {
            parts: contents.into_iter().map(ContentsPart::Ready).collect(),
        }
    }

    /// Converts to a result. Adds the URI and media type where they are missing.
    pub(crate) fn into_result(self, uri: &str, mime_type: Option<&str>) -> ReadResourceResult {
        let complete = |part| match part {
            ContentsPart::Ready(contents) => contents,
            ContentsPart::Text(text) => {
                let mut contents = turnbuckle_protocol::types::TextResourceContents::new(uri, text);
                contents.mime_type = mime_type.map(str::to_owned);
                contents.into()
            }
            ContentsPart::Blob(bytes) => {
                let base64 = BASE64_STANDARD.encode(&bytes);
                let mut contents =
                    turnbuckle_protocol::types::BlobResourceContents::new(uri, base64);
                contents.mime_type = mime_type.map(str::to_owned);
                contents.into()
            }
        };
        ReadResourceResult::new(self.parts.into_iter().map(complete).collect::<Vec<_>>())
    }
}

impl From<String> for Contents {
    fn from(text: String) -> Self {
        Self {
            parts: vec![ContentsPart::Text(text)],
        }
    }
}

impl From<&str> for Contents {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Bytes> for Contents {
    fn from(bytes: Bytes) -> Self {
        Self {
            parts: vec![ContentsPart::Blob(bytes)],
        }
    }
}

impl From<Vec<u8>> for Contents {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<ResourceContents> for Contents {
    fn from(contents: ResourceContents) -> Self {
        Self::new([contents])
    }
}
