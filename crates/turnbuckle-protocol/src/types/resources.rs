//! Resources: data that a server provides.

use serde::{Deserialize, Serialize};

use super::{
    Annotations, CacheScope, Icon, InputResponses, ResourceContents, lenient_number::integer,
};
use crate::meta::Meta;

/// A resource, as returned by `resources/list` or in a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The identifier.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description; models may read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// The size in bytes, before any encoding.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub size: Option<u64>,
    /// Icons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Resource {
    /// Creates a resource from its URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(Resource {
    optional {
        title: String,
        description: String,
        mime_type: String,
        annotations: Annotations,
        size: u64,
    }
    plain {
        icons: Vec<Icon>,
        meta: Meta,
    }
});

/// A family of resources, by URI template (RFC 6570).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceTemplate {
    /// The URI template.
    pub uri_template: String,
    /// The identifier.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description; models may read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if it is the same for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ResourceTemplate {
    /// Creates a resource template from a URI template and a name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            uri_template: uri_template.into(),
            name: name.into(),
            ..Self::default()
        }
    }
}

setters!(ResourceTemplate {
    optional {
        title: String,
        description: String,
        mime_type: String,
        annotations: Annotations,
    }
    plain {
        icons: Vec<Icon>,
        meta: Meta,
    }
});

list_result! {
    /// The result of `resources/list`.
    pub struct ListResourcesResult {
        /// One page of resources.
        pub resources: Vec<Resource>,
    }
}

list_result! {
    /// The result of `resources/templates/list`.
    pub struct ListResourceTemplatesResult {
        /// One page of templates.
        pub resource_templates: Vec<ResourceTemplate>,
    }
}

/// Parameters of `resources/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The URI of the resource.
    pub uri: String,
    /// Responses to the input requests of the previous round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// The state of the previous round trip, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadResourceParams {
    /// Reads a resource by its URI.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            input_responses: None,
            request_state: None,
            meta: Meta::default(),
        }
    }
}

setters!(ReadResourceParams {
    optional {
        input_responses: InputResponses,
        request_state: String,
    }
    plain { meta: Meta }
});

/// The result of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// The contents; several if the URI names a collection.
    pub contents: Vec<ResourceContents>,
    /// The number of milliseconds for which the result may be cached.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// The scope of the cached result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadResourceResult {
    /// Creates a result from contents.
    pub fn new(contents: impl Into<Vec<ResourceContents>>) -> Self {
        Self {
            contents: contents.into(),
            ..Self::default()
        }
    }
}

setters!(ReadResourceResult {
    optional {
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});

/// Parameters of `resources/subscribe` (legacy era only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeParams {
    /// The URI to subscribe to.
    pub uri: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SubscribeParams {
    /// Subscribes to a resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            meta: Meta::default(),
        }
    }
}

setters!(SubscribeParams { plain { meta: Meta } });

/// Parameters of `resources/unsubscribe` (legacy era only).
pub type UnsubscribeParams = SubscribeParams;

/// Parameters of `notifications/resources/updated`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// The URI of the changed resource; it may be below the subscribed one.
    pub uri: String,
    /// The `_meta` object.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ResourceUpdatedParams {
    /// Reports a changed resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            meta: Meta::default(),
        }
    }
}

setters!(ResourceUpdatedParams { plain { meta: Meta } });
