//! Resources: what a server has to read.

use serde::{Deserialize, Serialize};

use super::{
    Annotations, CacheScope, Cursor, Icon, InputResponses, ResourceContents, number::integer,
    setters::setters,
};
use crate::meta::Meta;

/// A resource, as a list or a link shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is; models may read this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Its size in bytes, before any encoding.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub size: Option<u64>,
    /// Pictures that stand for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl Resource {
    /// Creates a resource from its address and name.
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
    /// The template of their addresses.
    pub uri_template: String,
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What they are; models may read this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Their media type, if all have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures that stand for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ResourceTemplate {
    /// Creates a family of resources from its template and name.
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

/// The result of `resources/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourcesResult {
    /// One page of resources.
    pub resources: Vec<Resource>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListResourcesResult {
    /// Creates a page.
    pub fn new(resources: impl Into<Vec<Resource>>) -> Self {
        Self {
            resources: resources.into(),
            ..Self::default()
        }
    }
}

setters!(ListResourcesResult {
    optional {
        next_cursor: Cursor,
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});

/// The result of `resources/templates/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListResourceTemplatesResult {
    /// One page of templates.
    pub resource_templates: Vec<ResourceTemplate>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ListResourceTemplatesResult {
    /// Creates a page.
    pub fn new(resource_templates: impl Into<Vec<ResourceTemplate>>) -> Self {
        Self {
            resource_templates: resource_templates.into(),
            ..Self::default()
        }
    }
}

setters!(ListResourceTemplatesResult {
    optional {
        next_cursor: Cursor,
        ttl_ms: u64,
        cache_scope: CacheScope,
    }
    plain { meta: Meta }
});

/// Parameters of `resources/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReadResourceParams {
    /// The resource.
    pub uri: String,
    /// Answers to what an earlier round asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_responses: Option<InputResponses>,
    /// What the earlier round wants back, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_state: Option<String>,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ReadResourceParams {
    /// Reads a resource by its address.
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
    /// The resource, or several if the address names a collection.
    pub contents: Vec<ResourceContents>,
    /// For how many milliseconds the answer may be reused.
    #[serde(
        default,
        deserialize_with = "integer::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub ttl_ms: Option<u64>,
    /// Who may share a stored answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
    /// What `_meta` carries.
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

/// Parameters of `resources/subscribe` (handshake revisions only).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SubscribeParams {
    /// The resource to watch.
    pub uri: String,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl SubscribeParams {
    /// Watches a resource.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            meta: Meta::default(),
        }
    }
}

setters!(SubscribeParams { plain { meta: Meta } });

/// Parameters of `resources/unsubscribe` (handshake revisions only).
pub type UnsubscribeParams = SubscribeParams;

/// Parameters of `notifications/resources/updated`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUpdatedParams {
    /// The resource that changed; it may lie below the one subscribed to.
    pub uri: String,
    /// What `_meta` carries.
    #[serde(rename = "_meta", default, skip_serializing_if = "Meta::is_empty")]
    pub meta: Meta,
}

impl ResourceUpdatedParams {
    /// Says that a resource changed.
    pub fn new(uri: impl Into<String>) -> Self {
        Self {
            uri: uri.into(),
            meta: Meta::default(),
        }
    }
}

setters!(ResourceUpdatedParams { plain { meta: Meta } });
