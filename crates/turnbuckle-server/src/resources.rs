//! Resources: what a client may read, by address.

mod path;

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use turnbuckle_protocol::{
    Meta, json,
    types::{
        Annotations, Icon, ReadResourceResult, Resource as Definition, ResourceContents,
        ResourceTemplate as TemplateDefinition,
    },
    uri_template::UriTemplate,
};

use crate::{
    CacheHint,
    catalog::Listed,
    completion::{Completers, IntoCompleter},
    context::Context,
    exchange::BoxFuture,
    lifecycle::Rules,
    request_error::RequestError,
    scopes::Needs,
    shape::{Contextual, Nothing},
    visibility::Visibility,
};

/// Reads a resource: its URI and the context in, a future of the contents back.
pub(crate) type Read =
    Arc<dyn Fn(&str, Context) -> BoxFuture<Result<Contents, RequestError>> + Send + Sync>;

/// One resource at a fixed address.
///
/// ```
/// use turnbuckle_server::{RequestError, Resource};
///
/// let motd = Resource::text("notes://motd", "motd", "Nothing new today.");
/// let load = Resource::new("host://load", "load", async || {
///     Ok::<_, RequestError>(std::fs::read_to_string("/proc/loadavg")?)
/// });
/// ```
#[derive(Clone)]
pub struct Resource {
    pub(crate) definition: Definition,
    pub(crate) read: Read,
    pub(crate) cache: CacheHint,
    pub(crate) visibility: Visibility,
    pub(crate) needs: Needs,
}

impl Resource {
    /// A resource whose contents a function gives, each time it is read.
    ///
    /// The function takes a [`Context`] or nothing and returns text, bytes or [`Contents`].
    ///
    /// # Panics
    ///
    /// If the URI does not begin with a scheme and a colon.
    pub fn new<M>(
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: impl ReadHandler<M>,
    ) -> Self {
        let uri = uri.into();
        assert!(has_scheme(&uri), "`{uri}` is no URI: it has no scheme");
        Self {
            definition: Definition::new(uri, name),
            read: handler.into_read(),
            cache: CacheHint::NONE,
            visibility: Visibility::default(),
            needs: Needs::default(),
        }
    }

    /// A text that does not change.
    ///
    /// # Panics
    ///
    /// As [`Resource::new`].
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        Self::new(uri, name, move || {
            std::future::ready(Ok::<_, RequestError>(text.to_string()))
        })
        .mime_type("text/plain")
    }

    /// Bytes that do not change.
    ///
    /// # Panics
    ///
    /// As [`Resource::new`].
    pub fn bytes(
        uri: impl Into<String>,
        name: impl Into<String>,
        mime_type: impl Into<String>,
        bytes: impl Into<Bytes>,
    ) -> Self {
        let bytes = bytes.into();
        let size = bytes.len() as u64;
        let mut resource = Self::new(uri, name, move || {
            std::future::ready(Ok::<_, RequestError>(bytes.clone()))
        });
        resource.definition.size = Some(size);
        resource.mime_type(mime_type)
    }

    /// Describes the resource.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Gives the resource a name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Says what kind of content it has.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Says for whom it is and how much it matters.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Sets the resource's `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.definition.meta = meta;
        self
    }

    /// Says for how long and by whom the contents may be kept.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }
}

/// All resources whose addresses follow a template (RFC 6570), for example `file:///logs/{day}`.
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) definition: TemplateDefinition,
    pub(crate) template: Arc<UriTemplate>,
    pub(crate) read: ReadMatch,
    pub(crate) completers: Completers,
    pub(crate) cache: CacheHint,
    pub(crate) visibility: Visibility,
    pub(crate) needs: Needs,
}

/// Variables of a template, by name, decoded.
pub type Variables = BTreeMap<String, String>;

/// Reads a resource that a template describes.
pub(crate) type ReadMatch = Arc<
    dyn Fn(
            Variables,
            &str,
            Context,
        ) -> Result<BoxFuture<Result<Contents, RequestError>>, RequestError>
        + Send
        + Sync,
>;

impl ResourceTemplate {
    /// Resources that a function gives, from the variables of their URI.
    ///
    /// The function takes a type that serde reads from the variables (all of them text) and a [`Context`]. The values are
    /// decoded. Of `file:` URIs only those are found whose path neither climbs (`..`) nor begins anew (`//`); symbolic links
    /// remain yours to check.
    ///
    /// # Panics
    ///
    /// If the template is malformed, or begins neither with a scheme and a colon nor with a variable.
    pub fn new<V, F, Fut, C, E>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: F,
    ) -> Self
    where
        V: DeserializeOwned + Send + 'static,
        F: Fn(V, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<C, E>> + Send + 'static,
        C: Into<Contents>,
        E: Into<RequestError>,
    {
        let uri_template = uri_template.into();
        let template = UriTemplate::parse(&uri_template)
            .unwrap_or_else(|error| panic!("`{uri_template}` is no URI template: {error}"));
        assert!(
            uri_template.starts_with('{') || has_scheme(&uri_template),
            "`{uri_template}` describes no URIs: it has no scheme"
        );
        let read: ReadMatch = Arc::new(move |variables, _uri, cx| {
            let variables = serde::de::value::MapDeserializer::<_, serde::de::value::Error>::new(
                variables.into_iter(),
            );
            let variables = json::from_deserializer::<V, _>(variables)
                .map_err(|error| RequestError::invalid(error.to_string()))?;
            let run = handler(variables, cx);
            let future: BoxFuture<_> =
                Box::pin(async move { run.await.map(Into::into).map_err(Into::into) });
            Ok(future)
        });
        Self {
            definition: TemplateDefinition::new(uri_template, name),
            template: Arc::new(template),
            read,
            completers: Completers::default(),
            cache: CacheHint::NONE,
            visibility: Visibility::default(),
            needs: Needs::default(),
        }
    }

    /// The variables of a URI that this template describes. No path of a file may lead elsewhere than it says.
    pub(crate) fn matches(&self, uri: &str) -> Option<Variables> {
        self.template.matches(uri).filter(|_| !path::strays(uri))
    }

    /// Describes the resources.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.definition.description = Some(description.into());
        self
    }

    /// Gives the template a name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.definition.title = Some(title.into());
        self
    }

    /// Says what kind of content all of them have.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Says for whom they are and how much they matter.
    #[must_use]
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.definition.icons.push(icon);
        self
    }

    /// Completes a variable while the user types it.
    #[must_use]
    pub fn complete<M>(
        mut self,
        variable: impl Into<String>,
        completer: impl IntoCompleter<M>,
    ) -> Self {
        self.completers.add(variable.into(), completer);
        self
    }

    /// Says for how long and by whom the contents may be kept.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = hint;
        self
    }
}

/// What reading a resource gives: one or several texts or blobs.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Blob(Bytes),
    Ready(ResourceContents),
}

impl Contents {
    /// Contents put together by hand, with URIs of their own.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        Self {
            parts: contents.into_iter().map(Part::Ready).collect(),
        }
    }

    /// Fills in the address and the type where the handler did not say them.
    pub(crate) fn into_result(self, uri: &str, mime_type: Option<&str>) -> ReadResourceResult {
        let complete = |part| match part {
            Part::Ready(contents) => contents,
            Part::Text(text) => {
                let mut contents = turnbuckle_protocol::types::TextResourceContents::new(uri, text);
                contents.mime_type = mime_type.map(str::to_owned);
                contents.into()
            }
            Part::Blob(bytes) => {
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
            parts: vec![Part::Text(text)],
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
            parts: vec![Part::Blob(bytes)],
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

/// Says whether a URI begins with a scheme as RFC 3986 spells it.
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Implemented by the async functions of [`Resource::new`]; `M` keeps their shapes apart.
pub trait ReadHandler<M> {
    #[doc(hidden)]
    fn into_read(self) -> Read;
}

impl<F, Fut, C, E> ReadHandler<Nothing> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<C, E>> + Send + 'static,
    C: Into<Contents>,
    E: Into<RequestError>,
{
    fn into_read(self) -> Read {
        (move |_: Context| self()).into_read()
    }
}

impl<F, Fut, C, E> ReadHandler<Contextual> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<C, E>> + Send + 'static,
    C: Into<Contents>,
    E: Into<RequestError>,
{
    fn into_read(self) -> Read {
        Arc::new(move |_uri, cx| {
            let run = self(cx);
            Box::pin(async move { run.await.map(Into::into).map_err(Into::into) })
        })
    }
}

impl Listed for Resource {
    const MEMBER: &'static str = "resources";

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &Rules, out: &mut Vec<u8>) {
        rules.write(&mut self.definition.clone(), out);
    }
}

impl Listed for ResourceTemplate {
    const MEMBER: &'static str = "resourceTemplates";

    fn key(&self) -> &str {
        &self.definition.uri_template
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &Rules, out: &mut Vec<u8>) {
        rules.write(&mut self.definition.clone(), out);
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resource")
            .field("uri", &self.definition.uri)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceTemplate")
            .field("uri_template", &self.definition.uri_template)
            .finish_non_exhaustive()
    }
}
