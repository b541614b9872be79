//! The `data` of errors that have one.

use serde::{Deserialize, Serialize};

use super::{ClientCapabilities, ElicitUrlParams};

/// Data of -32022: the revision of the request is not spoken here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsupportedVersionData {
    /// What is spoken, also revisions with a handshake.
    pub supported: Vec<String>,
    /// What was asked for.
    pub requested: String,
}

impl UnsupportedVersionData {
    /// Says what is spoken instead.
    pub fn new(
        supported: impl IntoIterator<Item = impl Into<String>>,
        requested: impl Into<String>,
    ) -> Self {
        Self {
            supported: supported.into_iter().map(Into::into).collect(),
            requested: requested.into(),
        }
    }
}

/// Data of -32021: the request needs something that the client did not declare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingCapabilityData {
    /// The missing part, and only that.
    pub required_capabilities: ClientCapabilities,
}

impl MissingCapabilityData {
    /// Names what is missing.
    pub fn new(required_capabilities: ClientCapabilities) -> Self {
        Self {
            required_capabilities,
        }
    }
}

/// Data of -32020: a header is missing, malformed or different from the body.
///
/// The specification defines none; this is what ours says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HeaderMismatchData {
    /// The header.
    pub header: String,
}

impl HeaderMismatchData {
    /// Names the header.
    pub fn new(header: impl Into<String>) -> Self {
        Self {
            header: header.into(),
        }
    }
}

/// Data of -32002 (or -32602 in modern answers): the resource does not exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The address that was asked for.
    pub uri: String,
}

impl ResourceNotFoundData {
    /// Names the resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

/// Data of -32042 (2025-11-25 only): the user has to visit these URLs first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UrlElicitationRequiredData {
    /// The visits.
    pub elicitations: Vec<ElicitUrlParams>,
}

impl UrlElicitationRequiredData {
    /// Names the visits.
    pub fn new(elicitations: impl Into<Vec<ElicitUrlParams>>) -> Self {
        Self {
            elicitations: elicitations.into(),
        }
    }
}
