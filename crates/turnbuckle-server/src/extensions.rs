//! Extensions of the protocol: what a server declares, and what it needs of a client.

use serde_json::{Map, Value};
use turnbuckle_protocol::{
    Meta,
    meta::MetaKeyError,
    types::{ClientCapabilities, JsonObject},
};

use crate::{AskError, Context};

/// The extensions that a server declares, with their settings.
#[derive(Debug, Default, Clone)]
pub(crate) struct Extensions {
    declared: JsonObject,
}

impl Extensions {
    /// Declares one.
    ///
    /// # Panics
    ///
    /// If the identifier has no prefix or is spelt as none may be.
    pub(crate) fn declare(&mut self, identifier: String, settings: JsonObject) {
        if let Err(reason) = check(&identifier) {
            panic!("`{identifier}` names no extension: {reason}");
        }
        self.declared.insert(identifier, Value::Object(settings));
    }

    /// What is said about them in the capabilities.
    pub(crate) fn capability(&self) -> Option<JsonObject> {
        (!self.declared.is_empty()).then(|| self.declared.clone())
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

/// An identifier is spelt like a key of `_meta` and always has a prefix.
fn check(identifier: &str) -> Result<(), String> {
    match identifier.split_once('/') {
        Some((_, name)) if !name.is_empty() => {}
        _ => return Err("it is a prefix, a slash and a name".to_owned()),
    }
    match Meta::new().insert(identifier, true) {
        // Those of the specification itself are no secret.
        Ok(_) | Err(MetaKeyError::Reserved) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
