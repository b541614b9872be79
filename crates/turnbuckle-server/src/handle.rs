//! Handles: state between calls without a session. A tool returns a handle, and a later call passes it back.
//!
//! A handle is opaque text, encrypted with the server's keys and bound to the caller it was created for.

use std::{fmt, marker::PhantomData, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use turnbuckle_store::StoreError;

use crate::{
    Context,
    input::store_owner,
    request::{error::HandlerErrorKind, timestamp},
};

/// Maximum bytes of JSON in a handle.
const MAX_VALUE_BYTES: usize = 64 * 1024;
/// Maximum characters of a handle: Base64 of the above plus the encryption overhead.
const MAX_HANDLE_CHARS: usize = (MAX_VALUE_BYTES + 1024).div_ceil(3) * 4;

/// A value of an earlier call, as opaque text that a model can pass back.
///
/// Return it from a tool, alone or in a result, and accept it as an argument of another. It is valid for the caller it
/// was created for, until it expires, on every server with the same name and [`state_keys`](crate::Server::state_keys).
/// It represents the value at creation; a changed value needs a new handle.
///
/// ```
/// use std::time::Duration;
///
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use turnbuckle_server::{Context, Handle, HandleValue, Server, Tool, ToolError};
///
/// #[derive(Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
/// }
///
/// impl HandleValue for Cart {
///     const NAME: &'static str = "cart";
/// }
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// The cart that an earlier call returned; leave it out to begin a new one.
///     cart: Option<Handle<Cart>>,
///     item: String,
/// }
///
/// async fn add(args: Add, cx: Context) -> Result<Handle<Cart>, ToolError> {
///     let mut cart = match &args.cart {
///         Some(handle) => cx.resolve_handle(handle).await?,
///         None => Cart { items: Vec::new() },
///     };
///     cart.items.push(args.item);
///     Ok(cx.create_handle(&cart, Duration::from_secs(3600))?)
/// }
///
/// let shop = Server::new("shop", "1.0.0").tool(Tool::new("add", add));
/// ```
pub struct Handle<T> {
    text: String,
    value_type: PhantomData<fn() -> T>,
}

/// Implemented by types that a [`Handle`] can represent.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use turnbuckle_server::HandleValue;
///
/// #[derive(Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
/// }
///
/// impl HandleValue for Cart {
///     const NAME: &'static str = "cart";
/// }
/// ```
pub trait HandleValue: Serialize + DeserializeOwned {
    /// Identifies the type: a handle is only valid for the name it was created with.
    ///
    /// Handles outlive a release of your program. Use a new name if old values can no longer be deserialized.
    const NAME: &'static str;
}

/// The reason that a handle could not be created or resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandleError {
    /// The handle was altered, belongs to another caller or type, has expired, or its value was deleted.
    ///
    /// The error does not say which, so that probing foreign handles reveals nothing.
    #[error("this handle is invalid or has expired: start again without it")]
    Invalid,
    /// The value is too large for a handle; use [`Context::store_handle`].
    #[error(
        "the value has {size} bytes, but a handle is limited to {limit}: use `Context::store_handle`"
    )]
    TooLarge {
        /// Bytes of the value as JSON.
        size: usize,
        /// Maximum bytes.
        limit: usize,
    },
    /// The value cannot be serialized as JSON.
    #[error("the value of a handle cannot be serialized")]
    Serialize(#[source] serde_json::Error),
    /// The store failed to save or load the value.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

/// The encrypted content of a handle.
#[derive(Serialize, Deserialize)]
struct SealedHandle<V> {
    /// Expiry, in milliseconds since the Unix epoch.
    #[serde(rename = "x")]
    expires: u64,
    #[serde(rename = "c")]
    content: HandleContent<V>,
}

#[derive(Serialize, Deserialize)]
enum HandleContent<V> {
    /// The value itself.
    #[serde(rename = "v")]
    Inline(V),
    /// The key of the value in the store.
    #[serde(rename = "k")]
    Stored(String),
}

impl Context {
    /// Creates a handle that contains the value. Nothing is stored on the server.
    ///
    /// For values up to 64 KiB of JSON. A model has to repeat every character, so prefer
    /// [`store_handle`](Self::store_handle) unless the value is small.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use turnbuckle_server::{Context, Handle, HandleValue, ToolError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Cart { items: Vec<String> }
    /// # impl HandleValue for Cart { const NAME: &'static str = "cart"; }
    /// async fn begin(cx: Context) -> Result<Handle<Cart>, ToolError> {
    ///     let cart = Cart { items: Vec::new() };
    ///     Ok(cx.create_handle(&cart, Duration::from_secs(3600))?)
    /// }
    /// ```
    pub fn create_handle<T: HandleValue>(
        &self,
        value: &T,
        lifetime: Duration,
    ) -> Result<Handle<T>, HandleError> {
        self.seal_handle(HandleContent::Inline(value), lifetime)
    }

    /// Saves a value in the server's store, and returns a handle that refers to it.
    ///
    /// Any instance with the same store can resolve it. A handler that sends client requests may run again from the
    /// start, so call this inside [`once`](Self::once), as with other side effects.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use turnbuckle_server::{Context, Handle, HandleValue, ToolError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Report { pages: Vec<String> }
    /// # impl HandleValue for Report { const NAME: &'static str = "report"; }
    /// async fn draft(cx: Context) -> Result<Handle<Report>, ToolError> {
    ///     let report = Report { pages: vec!["…".repeat(100_000)] };
    ///     Ok(cx.store_handle(&report, Duration::from_secs(3600)).await?)
    /// }
    /// ```
    pub async fn store_handle<T: HandleValue>(
        &self,
        value: &T,
        lifetime: Duration,
    ) -> Result<Handle<T>, HandleError> {
        let bytes = serde_json::to_vec(value).map_err(HandleError::Serialize)?;
        let server = self.server();
        let journals = &server.store_ref().request_states;
        let stored = match store_owner(server, self.principal()) {
            Some(owner) => journals.put_for(&owner, bytes.into(), lifetime).await,
            None => journals.put(bytes.into(), lifetime).await,
        };
        let id = stored.map_err(HandleError::Store)?;
        self.seal_handle(HandleContent::<()>::Stored(id.to_string()), lifetime)
    }

    /// Returns the value of a handle.
    ///
    /// ```
    /// # use turnbuckle_server::{Context, Handle, HandleValue, ToolError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Cart { items: Vec<String> }
    /// # impl HandleValue for Cart { const NAME: &'static str = "cart"; }
    /// async fn count(handle: Handle<Cart>, cx: Context) -> Result<usize, ToolError> {
    ///     // The model reads that it has to start again, if it comes to that.
    ///     let cart = cx.resolve_handle(&handle).await?;
    ///     Ok(cart.items.len())
    /// }
    /// ```
    pub async fn resolve_handle<T: HandleValue>(
        &self,
        handle: &Handle<T>,
    ) -> Result<T, HandleError> {
        if handle.text.len() > MAX_HANDLE_CHARS {
            return Err(HandleError::Invalid);
        }
        let unsealed = self
            .server()
            .sealing_keys()
            .open(&handle.text, &self.binding::<T>());
        let unsealed = unsealed.map_err(|_| HandleError::Invalid)?;
        let sealed: SealedHandle<T> =
            serde_json::from_slice(&unsealed).map_err(|_| HandleError::Invalid)?;
        if sealed.expires <= millis(timestamp::unix_time()) {
            return Err(HandleError::Invalid);
        }
        match sealed.content {
            HandleContent::Inline(value) => Ok(value),
            HandleContent::Stored(id) => {
                let id = id.parse().map_err(|_| HandleError::Invalid)?;
                let stored = self.server().store_ref().request_states.get(&id).await;
                let bytes = stored.map_err(HandleError::Store)?;
                let bytes = bytes.ok_or(HandleError::Invalid)?;
                serde_json::from_slice(&bytes).map_err(|_| HandleError::Invalid)
            }
        }
    }

    fn seal_handle<T: HandleValue>(
        &self,
        content: HandleContent<impl Serialize>,
        lifetime: Duration,
    ) -> Result<Handle<T>, HandleError> {
        let expires = millis(timestamp::unix_time().saturating_add(lifetime));
        let sealed = serde_json::to_vec(&SealedHandle { expires, content });
        let sealed = sealed.map_err(HandleError::Serialize)?;
        if sealed.len() > MAX_VALUE_BYTES {
            return Err(HandleError::TooLarge {
                size: sealed.len(),
                limit: MAX_VALUE_BYTES,
            });
        }
        let text = self
            .server()
            .sealing_keys()
            .seal(&sealed, &self.binding::<T>());
        Ok(Handle {
            text,
            value_type: PhantomData,
        })
    }

    /// Binds a handle to the server, the caller and the type.
    fn binding<T: HandleValue>(&self) -> Vec<u8> {
        let principal = self.principal().map(|principal| {
            (
                &*principal.issuer,
                &*principal.subject,
                principal.client.as_deref(),
            )
        });
        let bound = serde_json::to_vec(&(self.server().name(), principal, T::NAME));
        Sha256::new_with_prefix(b"turnbuckle handle\0")
            .chain_update(bound.expect("strings can be written"))
            .finalize()
            .to_vec()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl HandleError {
    pub(crate) fn into_error_kind(self: Box<Self>) -> HandlerErrorKind {
        match self.caller_message() {
            Some(message) => HandlerErrorKind::message(message),
            None => HandlerErrorKind::Internal(self),
        }
    }

    /// Returns the message for the caller, if the caller can act on it.
    fn caller_message(&self) -> Option<String> {
        match self {
            Self::Invalid => Some(self.to_string()),
            Self::Store(StoreError::TooMany { .. }) => {
                Some("too many values are stored for this caller; try again later".to_owned())
            }
            _ => None,
        }
    }
}

impl<T> Handle<T> {
    /// The text of the handle.
    ///
    /// ```
    /// # use turnbuckle_server::Handle;
    /// # fn show<T>(handle: &Handle<T>) {
    /// let link = format!("https://shop.example/carts/{}", handle.as_str());
    /// # }
    /// ```
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            value_type: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle(***)")
    }
}

impl<T> Serialize for Handle<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, T> Deserialize<'de> for Handle<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Self {
            text,
            value_type: PhantomData,
        })
    }
}

impl<T> JsonSchema for Handle<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Handle".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A handle that this server gave out. Pass it on exactly as it is.",
        })
    }
}
