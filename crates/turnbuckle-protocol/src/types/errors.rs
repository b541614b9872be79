//! The `data` of error responses.

use serde::{Deserialize, Serialize};

use super::{ClientCapabilities, ElicitUrlParams};

/// Data of -32022: the revision of the request is not supported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnsupportedVersionData {
    /// The supported revisions, including those of the legacy era.
    pub supported: Vec<String>,
    /// The requested revision.
    pub requested: String,
}

impl UnsupportedVersionData {
    /// Lists the supported revisions.
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

/// Data of -32021: the request needs a capability that the client did not declare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingCapabilityData {
    /// The missing capabilities only.
    pub required_capabilities: ClientCapabilities,
}

impl MissingCapabilityData {
    /// Lists the missing capabilities.
    pub fn new(required_capabilities: ClientCapabilities) -> Self {
        Self {
            required_capabilities,
        }
    }
}

/// Data of -32020: a header is missing, malformed or different from the body.
///
/// Not defined by the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HeaderMismatchData {
    /// The name of the header.
    pub header: String,
}

impl HeaderMismatchData {
    /// Creates the data for a header.
    pub fn new(header: impl Into<String>) -> Self {
        Self {
            header: header.into(),
        }
    }
}

/// Data of -32002 (or -32602 in the modern era): the resource does not exist.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The requested URI.
    pub uri: String,
}

impl ResourceNotFoundData {
    /// Creates the data for a URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into() }
    }
}

/// Data of -32042 (2025-11-25 only): these URL elicitations are required first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UrlElicitationRequiredData {
    /// The URL elicitations.
    pub elicitations: Vec<ElicitUrlParams>,
}

impl UrlElicitationRequiredData {
    /// Lists the URL elicitations.
    pub fn new(elicitations: impl Into<Vec<ElicitUrlParams>>) -> Self {
        Self {
            elicitations: elicitations.into(),
        }
    }
}
