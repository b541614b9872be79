//! Extensions of the protocol: methods of your own, declared to clients under a name of your own.

mod handler;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use serde_json::{Map, Value};
use turnbuckle_protocol::{
    Meta,
    meta::MetaKeyError,
    method::Method,
    types::{ClientCapabilities, JsonObject},
};

pub use handler::MethodHandler;

pub(crate) use handler::Respond;

use crate::{AskError, CacheHint, Context, lifecycle::Rules};

/// An extension of the protocol: what clients are told of it, and the methods it adds.
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
/// It is declared in `capabilities.extensions`, as far as the client's revision has a place for it. Its methods are
/// answered in every revision, unless it is [`only_modern`](Self::only_modern).
#[derive(Clone)]
pub struct Extension {
    identifier: String,
    settings: Map<String, Value>,
    methods: Vec<ExtensionMethod>,
    only_modern: bool,
}

impl Extension {
    /// An extension without settings and methods yet. Its identifier is a name under a domain of yours, such as
    /// `com.example/bells`.
    ///
    /// # Panics
    ///
    /// If the identifier is not a prefix, a slash and a name.
    pub fn new(identifier: impl Into<String>) -> Self {
        let identifier = identifier.into();
        assert!(
            is_identifier(&identifier),
            "`{identifier}` names no extension: it is no prefix, slash and name"
        );
        Self {
            identifier,
            settings: Map::new(),
            methods: Vec::new(),
            only_modern: false,
        }
    }

    /// Sets what clients are told about how the extension is supported. By default an empty object.
    #[must_use]
    pub fn settings(mut self, settings: Map<String, Value>) -> Self {
        self.settings = settings;
        self
    }

    /// Adds a method: an async function of its parameters, a [`Context`](crate::Context), both or nothing.
    ///
    /// The function sees the parameters without `_meta`, and returns something that serde writes as an object.
    ///
    /// # Panics
    ///
    /// As [`ExtensionMethod::new`].
    #[must_use]
    pub fn method<M>(self, name: impl Into<String>, handler: impl MethodHandler<M>) -> Self {
        self.with(ExtensionMethod::new(name, handler))
    }

    /// Adds a method with options of its own. One with the same name is replaced.
    #[must_use]
    pub fn with(mut self, method: ExtensionMethod) -> Self {
        self.methods.retain(|known| known.name != method.name);
        self.methods.push(method);
        self
    }

    /// Offers the extension only to clients whose requests stand on their own (2026-07-28), not to sessions.
    #[must_use]
    pub fn only_modern(mut self) -> Self {
        self.only_modern = true;
        self
    }
}

/// A method that an extension adds.
#[derive(Clone)]
pub struct ExtensionMethod {
    name: String,
    pub(crate) respond: Respond,
    pub(crate) cache: Option<CacheHint>,
    name_member: Option<String>,
}

impl ExtensionMethod {
    /// A method that a function answers, as [`Extension::method`] says.
    ///
    /// # Panics
    ///
    /// If the protocol itself has a method of this name, or the name is one of a notification or empty.
    pub fn new<M>(name: impl Into<String>, handler: impl MethodHandler<M>) -> Self {
        Self::responding(name.into(), handler.into_respond())
    }

    pub(crate) fn responding(name: String, respond: Respond) -> Self {
        assert!(
            Method::named(&name).is_none(),
            "`{name}` is a method of the protocol and cannot be replaced"
        );
        assert!(
            !name.is_empty() && !name.starts_with("notifications/"),
            "`{name}` is no name of a method"
        );
        Self {
            name,
            respond,
            cache: None,
            name_member: None,
        }
    }

    /// Says for how long and by whom a result may be kept. By default results say nothing about it.
    #[must_use]
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.cache = Some(hint);
        self
    }

    /// Names the parameter that HTTP clients repeat in the header `Mcp-Name`, which is then compared.
    #[must_use]
    pub fn named_by(mut self, parameter: impl Into<String>) -> Self {
        self.name_member = Some(parameter.into());
        self
    }
}

/// What the handler of a method returned.
#[doc(hidden)]
pub enum Response {
    /// An object, which may carry `_meta`.
    Object(Map<String, Value>),
    /// An object that is written already, without its closing brace, and for how long it may be kept.
    Written(Bytes, CacheHint),
}

/// The extensions of a server.
#[derive(Clone, Default)]
pub(crate) struct Extensions {
    all: Vec<Extension>,
    methods: HashMap<String, Arc<Added>>,
}

/// A method, and to whom it is offered.
pub(crate) struct Added {
    pub(crate) method: ExtensionMethod,
    only_modern: bool,
}

impl Extensions {
    /// Adds an extension; one with the same identifier is replaced.
    pub(crate) fn put(&mut self, extension: Extension) {
        self.all
            .retain(|known| known.identifier != extension.identifier);
        self.all.push(extension);
        let added = self.all.iter().flat_map(|extension| {
            extension.methods.iter().map(|method| Added {
                method: method.clone(),
                only_modern: extension.only_modern,
            })
        });
        self.methods = added
            .map(|added| (added.method.name.clone(), Arc::new(added)))
            .collect();
    }

    /// Finds a method that peers of these rules may use.
    pub(crate) fn method(&self, name: &str, rules: &Rules) -> Option<&Arc<Added>> {
        let added = self.methods.get(name)?;
        (!added.only_modern || !rules.has_sessions()).then_some(added)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What peers of these rules are told, if there is anything to tell.
    pub(crate) fn declared(&self, rules: &Rules) -> Option<Map<String, Value>> {
        let declared: Map<_, _> = self
            .all
            .iter()
            .filter(|extension| !extension.only_modern || !rules.has_sessions())
            .map(|extension| {
                let settings = Value::Object(extension.settings.clone());
                (extension.identifier.clone(), settings)
            })
            .collect();
        (!declared.is_empty()).then_some(declared)
    }
}

impl Context {
    /// Fails if the client does not support an extension: the protocol's own error, where it has one.
    ///
    /// To do without instead, ask [`client_capabilities`](Self::client_capabilities).
    pub fn require_extension(&self, identifier: &str) -> Result<(), AskError> {
        if self.client_capabilities().has_extension(identifier) {
            return Ok(());
        }
        let needed = JsonObject::from_iter([(identifier.to_owned(), Value::Object(Map::new()))]);
        Err(AskError::Undeclared {
            needed: Box::new(ClientCapabilities::new().extensions(needed)),
        })
    }
}

impl Added {
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
            // Those of the specification itself are no secret.
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
