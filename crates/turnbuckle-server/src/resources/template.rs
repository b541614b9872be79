//! Resource templates: resources with URIs that follow an RFC 6570 template.

use std::{collections::BTreeMap, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    json,
    types::{Annotations, ResourceTemplate as TemplateDefinition},
    uri_template::UriTemplate,
};
use turnbuckle_text::percent;

use super::{Contents, InvalidResourceUri, content_setters, has_scheme};
use crate::{
    CacheHint,
    catalog::{
        CatalogEntry,
        completion::{Completers, IntoCompleter},
        entry_setters,
        scopes::RequiredScopes,
        visibility::Visibility,
    },
    context::Context,
    lifecycle::RevisionRules,
    request::{BoxFuture, error::RequestError},
    server::SharedState,
    tools::arguments::{ArgsAndContext, ArgsOnly},
};

/// A set of resources with URIs that follow a template (RFC 6570), for example `file:///logs/{day}`.
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) definition: TemplateDefinition,
    pub(crate) template: Arc<UriTemplate>,
    pub(crate) read: ReadTemplateFn,
    pub(crate) completers: Completers,
    pub(crate) cache: CacheHint,
    pub(crate) visibility: Visibility,
    pub(crate) required_scopes: RequiredScopes,
    /// The state of the mounted servers that the item comes from.
    pub(crate) state: Option<Arc<SharedState>>,
}

/// Decoded variables of a template, by name.
pub type Variables = BTreeMap<String, String>;

/// A type-erased template handler.
pub(crate) type ReadTemplateFn = Arc<
    dyn Fn(
            Variables,
            &str,
            Context,
        ) -> Result<BoxFuture<Result<Contents, RequestError>>, RequestError>
        + Send
        + Sync,
>;

impl ResourceTemplate {
    /// Creates a template with resources read by a function of the URI's variables.
    ///
    /// The function takes a type that deserializes from the variables (all of them text), and a [`Context`] if it has a
    /// second parameter. The values are decoded. `file:` URIs with `..` or `//` in the path do not match; symbolic links
    /// are up to you.
    ///
    /// # Panics
    ///
    /// If the template is malformed, or starts neither with a scheme and a colon nor with a variable.
    pub fn new<M>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: impl ReadTemplateHandler<M>,
    ) -> Self {
        Self::try_new(uri_template, name, handler).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`ResourceTemplate::new`], with an error instead of a panic.
    pub fn try_new<M>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        handler: impl ReadTemplateHandler<M>,
    ) -> Result<Self, InvalidResourceUri> {
        let uri_template = uri_template.into();
        let template = match UriTemplate::parse(&uri_template) {
            Ok(template) => template,
            Err(error) => {
                return Err(InvalidResourceUri::Template {
                    template: uri_template,
                    reason: error.to_string(),
                });
            }
        };
        if !uri_template.starts_with('{') && !has_scheme(&uri_template) {
            return Err(InvalidResourceUri::NoTemplateScheme {
                template: uri_template,
            });
        }
        Ok(Self {
            definition: TemplateDefinition::new(uri_template, name),
            template: Arc::new(template),
            read: handler.into_read_template_fn(),
            completers: Completers::default(),
            cache: CacheHint::NONE,
            visibility: Visibility::default(),
            required_scopes: RequiredScopes::default(),
            state: None,
        })
    }

    /// Returns the variables of a URI that matches. Paths that leave the template are rejected.
    pub(crate) fn matches(&self, uri: &str) -> Option<Variables> {
        self.template.matches(uri).filter(|_| !escapes_root(uri))
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
}

content_setters!(ResourceTemplate);

entry_setters!(ResourceTemplate {
    /// Describes the resources.
    description,
    /// Restricts these resources to callers that match `predicate`; see [`Resource::visible_to`](crate::Resource::visible_to).
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// use turnbuckle_server::{Context, ResourceTemplate};
    ///
    /// let files = ResourceTemplate::new(
    ///     "staff://{name}",
    ///     "file",
    ///     async |_: BTreeMap<String, String>, _: Context| Ok("…"),
    /// )
    /// .visible_to(|principal| principal.is_some_and(|who| who.scopes.contains("payroll")));
    /// ```
    visible_to,
    /// Requires all of these scopes to read or subscribe to these resources, or complete their variables; see
    /// [`Tool::scopes`](crate::Tool::scopes).
    ///
    /// # Panics
    ///
    /// As [`Tool::scopes`](crate::Tool::scopes).
    scopes,
});

/// Implemented by the async functions of [`ResourceTemplate::new`]. `M` distinguishes the function signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot be a resource template",
    label = "a resource template is an async function `(variables)` or `(variables, cx)` that returns `Result<T, RequestError>`",
    note = "`variables` implements `serde::Deserialize`, such as `Variables`; `cx` is a `Context`; `T` is text, bytes or `Contents`",
    note = "`?` converts other errors to `RequestError`"
)]
pub trait ReadTemplateHandler<M> {
    #[doc(hidden)]
    fn into_read_template_fn(self) -> ReadTemplateFn;
}

impl<V, F, Fut, C> ReadTemplateHandler<ArgsOnly<V>> for F
where
    V: DeserializeOwned + Send + 'static,
    F: Fn(V) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<C, RequestError>> + Send + 'static,
    C: Into<Contents>,
{
    fn into_read_template_fn(self) -> ReadTemplateFn {
        (move |variables: V, _: Context| self(variables)).into_read_template_fn()
    }
}

impl<V, F, Fut, C> ReadTemplateHandler<ArgsAndContext<V>> for F
where
    V: DeserializeOwned + Send + 'static,
    F: Fn(V, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<C, RequestError>> + Send + 'static,
    C: Into<Contents>,
{
    fn into_read_template_fn(self) -> ReadTemplateFn {
        Arc::new(move |variables, _uri, cx| {
            let variables = variables.into_iter();
            let variables: Map<_, _> = variables
                .map(|(name, value)| (name, value.into()))
                .collect();
            let variables = json::from_deserializer::<V, _>(Value::Object(variables))
                .map_err(|error| RequestError::invalid(error.to_string()))?;
            let run = self(variables, cx);
            let future: BoxFuture<_> = Box::pin(async move { run.await.map(Into::into) });
            Ok(future)
        })
    }
}

impl CatalogEntry for ResourceTemplate {
    const MEMBER: &'static str = "resourceTemplates";

    fn key(&self) -> &str {
        &self.definition.uri_template
    }

    fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    fn write(&self, rules: &RevisionRules, out: &mut Vec<u8>) {
        rules.write(&mut self.definition.clone(), out);
    }
}

impl std::fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceTemplate")
            .field("uri_template", &self.definition.uri_template)
            .finish_non_exhaustive()
    }
}

/// Returns whether the path of a `file:` URI contains `..` or `//`. Joining such a path would lead to a file outside of
/// the template.
///
/// Percent escapes are decoded first, as for the handler; an invalid escape is kept, and matches no template. Symbolic links are not checked here.
fn escapes_root(uri: &str) -> bool {
    let Some(path) = uri.strip_prefix("file:") else {
        return false;
    };
    let path = percent::decode(path.strip_prefix("//").unwrap_or(path));
    let is_forbidden = |part: &[u8]| part == b".." || part.contains(&0) || part.contains(&b'\\');
    path.windows(2).any(|pair| pair == b"//") || path.split(|&byte| byte == b'/').any(is_forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_stays_below_the_root() {
        for uri in [
            "file:///docs/a.txt",
            "file:///docs/a..b/..c/d../.hidden/",
            "file://host/docs/%20",
            "file:docs/a",
            "note://../..//",
        ] {
            assert!(!escapes_root(uri), "{uri}");
        }
    }

    #[test]
    fn a_path_out_of_the_root_is_found_in_every_spelling() {
        for uri in [
            "file:///docs/../etc/passwd",
            "file:///docs/..",
            "file:///docs/%2e%2E/etc",
            "file:///docs/.%2e%2fetc",
            "file:///docs//etc/passwd",
            "file:///docs/%2Fetc/passwd",
            "file:///docs/..%5Cetc",
            "file:///docs/a\\b",
            "file:///docs/a%00.txt",
            "file:../etc",
        ] {
            assert!(escapes_root(uri), "{uri}");
        }
    }
}
