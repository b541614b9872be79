//! Resources: data that clients can read by URI.

mod contents;
mod template;

use std::{any::Any, sync::Arc};

use bytes::Bytes;
pub use contents::Contents;
pub use template::{ReadTemplateHandler, ResourceTemplate, Variables};
use turnbuckle_protocol::types::{Annotations, Resource as ResourceDefinition};

use crate::{
    CacheHint, Server,
    catalog::{CatalogEntry, entry_setters, scopes::RequiredScopes, visibility::Visibility},
    context::Context,
    lifecycle::RevisionRules,
    request::{BoxFuture, error::RequestError},
    server::SharedState,
    tools::arguments::{ContextOnly, NoArgsHandler},
};

/// A type-erased resource handler: takes the URI and the context, returns a future of the contents.
pub(crate) type ReadFn =
    Arc<dyn Fn(&str, Context) -> BoxFuture<Result<Contents, RequestError>> + Send + Sync>;

/// A resource with a fixed URI.
///
/// ```
/// use turnbuckle_server::Resource;
///
/// let motd = Resource::text("notes://motd", "motd", "Nothing new today.");
/// let load = Resource::new("host://load", "load", async || {
///     Ok(std::fs::read_to_string("/proc/loadavg")?)
/// });
/// ```
#[derive(Clone)]
pub struct Resource {
    pub(crate) definition: ResourceDefinition,
    pub(crate) read: ReadFn,
    pub(crate) cache: CacheHint,
    pub(crate) visibility: Visibility,
    pub(crate) required_scopes: RequiredScopes,
    /// The state of the mounted servers that the item comes from.
    pub(crate) state: Option<Arc<SharedState>>,
}

impl Resource {
    /// Creates a resource that is read by a function.
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
        Self::try_new(uri, name, handler).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`Resource::new`], with an error instead of a panic.
    pub fn try_new<M>(
        uri: impl Into<String>,
        name: impl Into<String>,
        handler: impl ReadHandler<M>,
    ) -> Result<Self, InvalidResourceUri> {
        let uri = uri.into();
        if !has_scheme(&uri) {
            return Err(InvalidResourceUri::NoScheme { uri });
        }
        Ok(Self {
            definition: ResourceDefinition::new(uri, name),
            read: handler.into_read_fn(),
            cache: CacheHint::NONE,
            visibility: Visibility::default(),
            required_scopes: RequiredScopes::default(),
            state: None,
        })
    }

    /// Creates a resource with constant text.
    ///
    /// # Panics
    ///
    /// As [`Resource::new`].
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        Self::new(uri, name, move || std::future::ready(Ok(text.to_string())))
            .mime_type("text/plain")
    }

    /// Creates a resource with constant bytes.
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
        let mut resource = Self::new(uri, name, move || std::future::ready(Ok(bytes.clone())));
        resource.definition.size = Some(size);
        resource.mime_type(mime_type)
    }
}

/// Defines the builder methods that resources and resource templates share.
macro_rules! content_setters {
    ($entry:ident) => {
        impl $entry {
            /// Sets the media type of the contents.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.definition.mime_type = Some(mime_type.into());
                self
            }

            /// Sets the annotations, such as audience and priority.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Sets the cache hint of the contents.
            #[must_use]
            pub fn cache(mut self, hint: CacheHint) -> Self {
                self.cache = hint;
                self
            }
        }
    };
}
pub(crate) use content_setters;

content_setters!(Resource);

entry_setters!(Resource {
    /// Describes the resource.
    description,
    /// Restricts the resource to callers that match `predicate`; see [`Tool::visible_to`](crate::Tool::visible_to).
    ///
    /// Other callers cannot subscribe to it or receive its updates. A template that matches the same URI can still read
    /// it, under its own predicate, but does not deliver updates.
    ///
    /// ```
    /// use turnbuckle_server::Resource;
    ///
    /// let salaries = Resource::text("staff://salaries", "salaries", "Ada: 100")
    ///     .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("payroll")));
    /// ```
    visible_to,
    /// Requires all of these scopes to read the resource or subscribe to it; see [`Tool::scopes`](crate::Tool::scopes).
    ///
    /// # Panics
    ///
    /// As [`Tool::scopes`](crate::Tool::scopes).
    scopes,
});

/// The reason that a resource or resource template cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResourceUri {
    /// The URI of a resource does not begin with a scheme and a colon.
    #[error("`{uri}` is not a URI: the scheme is missing")]
    NoScheme {
        /// The text.
        uri: String,
    },
    /// A URI template begins neither with a scheme and a colon nor with a variable.
    #[error("`{template}` is not a URI template: the scheme is missing")]
    NoTemplateScheme {
        /// The text.
        template: String,
    },
    /// A URI template is malformed.
    #[error("`{template}` is not a valid URI template: {reason}")]
    Template {
        /// The text.
        template: String,
        /// The problem.
        reason: String,
    },
}

/// Returns whether a URI starts with a scheme (RFC 3986).
fn has_scheme(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Implemented by the async functions of [`Resource::new`]. `M` distinguishes the function signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a resource",
    label = "a resource is an async function `(cx)` or `()` that returns `Result<T, RequestError>`",
    note = "`cx` is a `Context`; `T` is text, bytes or `Contents`; `?` converts other errors to `RequestError`"
)]
pub trait ReadHandler<M> {
    #[doc(hidden)]
    fn into_read_fn(self) -> ReadFn;
}

impl<F, Fut, C> ReadHandler<NoArgsHandler> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<C, RequestError>> + Send + 'static,
    C: Into<Contents>,
{
    fn into_read_fn(self) -> ReadFn {
        (move |_: Context| self()).into_read_fn()
    }
}

impl<F, Fut, C> ReadHandler<ContextOnly> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<C, RequestError>> + Send + 'static,
    C: Into<Contents>,
{
    fn into_read_fn(self) -> ReadFn {
        Arc::new(move |_uri, cx| {
            let run = self(cx);
            Box::pin(async move { run.await.map(Into::into) })
        })
    }
}

impl CatalogEntry for Resource {
    const MEMBER: &'static str = "resources";

    fn key(&self) -> &str {
        &self.definition.uri
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &RevisionRules, out: &mut Vec<u8>) {
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

/// A source of resources in addition to the catalog. It is refreshed before it is served.
pub(crate) trait ResourceProvider: Any + Send + Sync {
    /// Returns whether the provider is responsible for this URI.
    fn owns(&self, uri: &str) -> bool;
    /// Returns whether the URI existed at the last refresh.
    fn has(&self, uri: &str) -> bool;
    /// The resources for `resources/list`.
    fn listed(&self) -> Arc<Vec<Arc<Resource>>>;
    /// The cache hint of contents.
    fn cache(&self) -> CacheHint;
    /// Refreshes the provider, unless that was done recently.
    fn refresh(self: Arc<Self>, server: Server) -> BoxFuture<()>;
    /// Reads a resource.
    fn read(self: Arc<Self>, uri: &str, cx: Context) -> BoxFuture<Result<Contents, RequestError>>;
    /// Starts watching for changes, because a client may receive notifications of them.
    fn start(self: Arc<Self>, server: &Server);
}
