//! Extensions: additional methods, advertised to clients under your own identifier.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    Meta, RpcError, json,
    meta::MetaKeyError,
    method::Method,
    types::{ClientCapabilities, JsonObject},
};

use crate::{
    CacheHint, ClientRequestError, Context, RequestError,
    lifecycle::RevisionRules,
    request::BoxFuture,
    tools::arguments::{self, ArgsAndContext, ArgsOnly, ContextOnly, NoArgsHandler},
};

/// An extension of the protocol: its settings and its methods.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use turnbuckle_server::{Extension, RequestError, Server};
///
/// #[derive(Deserialize)]
/// struct Which {
///     name: String,
/// }
///
/// #[derive(Serialize)]
/// struct Bell {
///     sound: String,
/// }
///
/// async fn ring(which: Which) -> Result<Bell, RequestError> {
///     Ok(Bell { sound: format!("{} rings", which.name) })
/// }
///
/// let server = Server::new("bells", "1.0.0")
///     .extension(Extension::new("com.example/bells").method("bells/ring", ring));
/// ```
///
/// It is advertised in `capabilities.extensions`, where the client's revision has that member. Its methods work in
/// every revision, unless it is [`stateless_only`](Self::stateless_only).
#[derive(Clone)]
pub struct Extension {
    identifier: String,
    settings: Map<String, Value>,
    methods: Vec<ExtensionMethod>,
    stateless_only: bool,
}

impl Extension {
    /// Creates an extension without settings and methods. The identifier is a name under your own domain, such as
    /// `com.example/bells`.
    ///
    /// # Panics
    ///
    /// If the identifier is not a prefix, a slash and a name.
    pub fn new(identifier: impl Into<String>) -> Self {
        Self::try_new(identifier).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`Extension::new`], with an error instead of a panic.
    pub fn try_new(identifier: impl Into<String>) -> Result<Self, InvalidExtension> {
        let identifier = identifier.into();
        if !is_identifier(&identifier) {
            return Err(InvalidExtension::Identifier { identifier });
        }
        Ok(Self {
            identifier,
            settings: Map::new(),
            methods: Vec::new(),
            stateless_only: false,
        })
    }

    /// Sets the settings advertised to clients. An empty object by default.
    #[must_use]
    pub fn settings(mut self, settings: Map<String, Value>) -> Self {
        self.settings = settings;
        self
    }

    /// Adds a method: an async function of its parameters, a [`Context`], both or neither.
    ///
    /// The function gets the parameters without `_meta`, and returns a value that serializes to an object.
    ///
    /// # Panics
    ///
    /// As [`ExtensionMethod::new`].
    #[must_use]
    pub fn method<M>(self, name: impl Into<String>, handler: impl MethodHandler<M>) -> Self {
        self.with(ExtensionMethod::new(name, handler))
    }

    /// Like [`method`](Self::method), with an error instead of a panic.
    pub fn try_method<M>(
        self,
        name: impl Into<String>,
        handler: impl MethodHandler<M>,
    ) -> Result<Self, InvalidExtension> {
        Ok(self.with(ExtensionMethod::try_new(name, handler)?))
    }

    /// Adds a method with options. A method with the same name is replaced.
    #[must_use]
    pub fn with(mut self, method: ExtensionMethod) -> Self {
        self.methods.retain(|existing| existing.name != method.name);
        self.methods.push(method);
        self
    }

    /// Limits the extension to stateless requests (2026-07-28), excluding sessions.
    #[must_use]
    pub fn stateless_only(mut self) -> Self {
        self.stateless_only = true;
        self
    }
}

/// A method of an extension.
#[derive(Clone)]
pub struct ExtensionMethod {
    name: String,
    pub(crate) respond: RespondFn,
    pub(crate) cache: Option<CacheHint>,
    name_member: Option<String>,
}

impl ExtensionMethod {
    /// Creates a method handled by a function; see [`Extension::method`].
    ///
    /// # Panics
    ///
    /// If the protocol defines a method with this name, or if the name is empty or that of a notification.
    pub fn new<M>(name: impl Into<String>, handler: impl MethodHandler<M>) -> Self {
        Self::try_new(name, handler).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Like [`ExtensionMethod::new`], with an error instead of a panic.
    pub fn try_new<M>(
        name: impl Into<String>,
        handler: impl MethodHandler<M>,
    ) -> Result<Self, InvalidExtension> {
        Self::from_respond_fn(name.into(), handler.into_respond_fn())
    }

    pub(crate) fn from_respond_fn(
        name: String,
        respond: RespondFn,
    ) -> Result<Self, InvalidExtension> {
        if Method::from_name(&name).is_some() {
            return Err(InvalidExtension::ProtocolMethod { method: name });
        }
        if name.is_empty() || name.starts_with("notifications/") {
            return Err(InvalidExtension::Method { method: name });
        }
        Ok(Self {
            name,
            respond,
            cache: None,
            name_member: None,
        })
    }

    /// Sets the cache hint of results. Omitted by default.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = Some(hint);
        self
    }

    /// Names the parameter that HTTP clients repeat in the `Mcp-Name` header. The two are then compared.
    #[must_use]
    pub fn named_by(mut self, parameter: impl Into<String>) -> Self {
        self.name_member = Some(parameter.into());
        self
    }
}

/// The reason that an extension or one of its methods cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidExtension {
    /// The identifier is not a prefix, a slash and a name.
    #[error("`{identifier}` is not an extension identifier: expected a prefix, a slash and a name")]
    Identifier {
        /// The text.
        identifier: String,
    },
    /// The protocol defines a method with this name.
    #[error("`{method}` is a method of the protocol and cannot be replaced")]
    ProtocolMethod {
        /// The name.
        method: String,
    },
    /// The name is empty or that of a notification.
    #[error("`{method}` is not a method name")]
    Method {
        /// The name.
        method: String,
    },
}

/// The return value of a method handler.
#[doc(hidden)]
pub enum ExtensionResponse {
    /// An object, which may contain `_meta`.
    Object(Map<String, Value>),
    /// An encoded object without its closing brace, and its cache hint.
    Encoded(Bytes, CacheHint),
}

/// The extensions of a server.
#[derive(Clone, Default)]
pub(crate) struct Extensions {
    all: Vec<Extension>,
    methods: HashMap<String, Arc<RegisteredMethod>>,
}

/// A method, and the requests it is available to.
pub(crate) struct RegisteredMethod {
    pub(crate) method: ExtensionMethod,
    stateless_only: bool,
}

impl Extensions {
    /// Adds an extension. An extension with the same identifier is replaced.
    pub(crate) fn put(&mut self, extension: Extension) {
        self.all
            .retain(|existing| existing.identifier != extension.identifier);
        self.all.push(extension);
        let registered = self.all.iter().flat_map(|extension| {
            extension.methods.iter().map(|method| RegisteredMethod {
                method: method.clone(),
                stateless_only: extension.stateless_only,
            })
        });
        self.methods = registered
            .map(|registered| (registered.method.name.clone(), Arc::new(registered)))
            .collect();
    }

    /// Finds a method that is available under these revision rules.
    pub(crate) fn method(
        &self,
        name: &str,
        rules: &RevisionRules,
    ) -> Option<&Arc<RegisteredMethod>> {
        let registered = self.methods.get(name)?;
        (!registered.stateless_only || !rules.has_sessions()).then_some(registered)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the advertised extensions for these revision rules, or `None` if there are none.
    pub(crate) fn advertised(&self, rules: &RevisionRules) -> Option<Map<String, Value>> {
        let advertised: Map<_, _> = self
            .all
            .iter()
            .filter(|extension| !extension.stateless_only || !rules.has_sessions())
            .map(|extension| {
                let settings = Value::Object(extension.settings.clone());
                (extension.identifier.clone(), settings)
            })
            .collect();
        (!advertised.is_empty()).then_some(advertised)
    }
}

impl Context {
    /// Fails if the client does not support an extension, with the protocol's own error where the revision defines one.
    ///
    /// To continue without the extension, check [`client_capabilities`](Self::client_capabilities) instead.
    pub fn require_extension(&self, identifier: &str) -> Result<(), ClientRequestError> {
        if self.client_capabilities().has_extension(identifier) {
            return Ok(());
        }
        let needed = JsonObject::from_iter([(identifier.to_owned(), Value::Object(Map::new()))]);
        Err(ClientRequestError::MissingCapability {
            required: Box::new(ClientCapabilities::new().extensions(needed)),
        })
    }
}

impl RegisteredMethod {
    pub(crate) fn name_member(&self) -> Option<&str> {
        self.method.name_member.as_deref()
    }
}

/// Identifiers follow the rules of `_meta` keys, and always have a prefix.
fn is_identifier(identifier: &str) -> bool {
    let has_prefix = identifier
        .split_once('/')
        .is_some_and(|(_, name)| !name.is_empty());
    has_prefix
        && match Meta::new().insert(identifier, true) {
            // Identifiers of the specification itself are allowed.
            Ok(_) | Err(MetaKeyError::Reserved) => true,
            Err(_) => false,
        }
}

impl std::fmt::Debug for Extension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extension")
            .field("identifier", &self.identifier)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ExtensionMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtensionMethod")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A type-erased method handler: takes the raw parameters and the context, returns a future of the response.
pub(crate) type RespondFn = Arc<
    dyn Fn(&str, Context) -> Result<BoxFuture<Result<ExtensionResponse, RequestError>>, RpcError>
        + Send
        + Sync,
>;

/// Implemented by the async functions of [`Extension::method`](crate::Extension::method). `M` distinguishes the
/// function signatures.
#[diagnostic::on_unimplemented(
    message = "this function cannot handle a method",
    label = "a method is an async function `(params)`, `(cx)`, `(params, cx)` or `()` that returns `Result<T, RequestError>`",
    note = "`params` implements `serde::Deserialize`; `cx` is a `Context`; `T` implements `serde::Serialize`",
    note = "`?` converts other errors to `RequestError`"
)]
pub trait MethodHandler<M> {
    #[doc(hidden)]
    fn into_respond_fn(self) -> RespondFn;
}

/// Reads typed parameters and boxes the future that `start` returns.
fn typed<A, S, Fut, T>(start: S) -> RespondFn
where
    A: DeserializeOwned + Send + 'static,
    S: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, RequestError>> + Send + 'static,
    T: Serialize,
{
    Arc::new(move |params: &str, cx: Context| {
        let params = json::from_str(params)?;
        let run = start(params, cx);
        let future: BoxFuture<_> = Box::pin(async move { object(run.await?) });
        Ok(future)
    })
}

fn object(result: impl Serialize) -> Result<ExtensionResponse, RequestError> {
    match serde_json::to_value(result)? {
        Value::Object(object) => Ok(ExtensionResponse::Object(object)),
        Value::Null => Ok(ExtensionResponse::Object(Default::default())),
        _ => Err(RequestError::internal(
            "the result of a method must be an object",
        )),
    }
}

/// Implements the trait for one function signature.
macro_rules! impl_method_handler {
    ([$($generic:ident)?] $marker:ty, $read:ty, ($($input:ty),*), |$params:ident, $cx:ident| ($($pass:ident),*)) => {
        impl<$($generic,)? F, Fut, T> MethodHandler<$marker> for F
        where
            $($generic: DeserializeOwned + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T, RequestError>> + Send + 'static,
            T: Serialize,
        {
            fn into_respond_fn(self) -> RespondFn {
                typed(move |$params: $read, $cx: Context| self($($pass),*))
            }
        }
    };
}

impl_method_handler!([A] ArgsAndContext<A>, A, (A, Context), |params, cx| (params, cx));
impl_method_handler!([A] ArgsOnly<A>, A, (A), |params, _cx| (params));
impl_method_handler!([] ContextOnly, arguments::NoArguments, (Context), |_params, cx| (cx));
impl_method_handler!([] NoArgsHandler, arguments::NoArguments, (), |_params, _cx| ());
