//! State between calls without a session: a tool gives out a handle, and a later call brings it back.
//!
//! The model sees an opaque text. It is sealed with the keys of the server, for the caller it was given to.

use std::{fmt, marker::PhantomData, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use turnbuckle_store::StoreError;

use crate::{Context, RequestError, ToolError, clock, input::owner};

/// Bytes of JSON that travel in a handle.
const LARGEST: usize = 64 * 1024;
/// Characters of the longest handle that is given out: Base64 of the above and of what sealing adds.
const LONGEST: usize = (LARGEST + 1024).div_ceil(3) * 4;

/// A value of an earlier call, as a text that a model can pass on.
///
/// Return it from a tool, alone or inside of a result, and take it as an argument of another. It works for the caller
/// that it was given to, until its time is over, on every server of the same name with the same
/// [`state_keys`](crate::Server::state_keys). It stands for the value as it was: a changed value gets a handle of its own.
///
/// ```
/// use std::time::Duration;
///
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use turnbuckle_server::{Context, Handle, Held, Server, Tool, ToolError};
///
/// #[derive(Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
/// }
///
/// impl Held for Cart {
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
///         Some(handle) => cx.open(handle).await?,
///         None => Cart { items: Vec::new() },
///     };
///     cart.items.push(args.item);
///     Ok(cx.seal(&cart, Duration::from_secs(3600))?)
/// }
///
/// let shop = Server::new("shop", "1.0.0").tool(Tool::new("add", add));
/// ```
pub struct Handle<T> {
    text: String,
    of: PhantomData<fn() -> T>,
}

/// What a [`Handle`] may stand for.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use turnbuckle_server::Held;
///
/// #[derive(Serialize, Deserialize)]
/// struct Cart {
///     items: Vec<String>,
/// }
///
/// impl Held for Cart {
///     const NAME: &'static str = "cart";
/// }
/// ```
pub trait Held: Serialize + DeserializeOwned {
    /// Tells this type from others: a handle of one name opens as no other.
    ///
    /// It outlives a release of your program, so a type whose old values cannot be read any more needs a new one.
    const NAME: &'static str;
}

/// Why there is no handle for a value, or no value for a handle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandleError {
    /// The handle was altered, is another caller's, of another type, too old, or its value is gone.
    ///
    /// Which of them it is stays untold, here too: whoever tries handles of others learns nothing.
    #[error("this handle is not valid, or no longer is: start again without it")]
    Invalid,
    /// The value is too large to travel; [`Context::keep`] has room for it.
    #[error(
        "a value of {size} bytes does not fit into a handle with room for {limit}: use `Context::keep`"
    )]
    TooLarge {
        /// How many bytes of JSON it has.
        size: usize,
        /// How many may travel.
        limit: usize,
    },
    /// The value cannot be written as JSON.
    #[error("the value of a handle cannot be written")]
    Unwritable(#[source] serde_json::Error),
    /// The store did not take or return the value.
    #[error("the store failed")]
    Store(#[source] StoreError),
}

/// What is sealed into a handle.
#[derive(Serialize, Deserialize)]
struct Sealed<V> {
    /// Milliseconds since 1970 from which on it is not valid.
    #[serde(rename = "x")]
    expires: u64,
    #[serde(rename = "c")]
    content: Content<V>,
}

#[derive(Serialize, Deserialize)]
enum Content<V> {
    /// The value itself.
    #[serde(rename = "v")]
    Whole(V),
    /// The name under which the store has the value.
    #[serde(rename = "k")]
    Kept(String),
}

impl Context {
    /// Seals a value into a handle, which then is all there is of it: nothing is kept on the server.
    ///
    /// For what fits into 64 KiB of JSON. A model has to repeat every character of it, so what is not small is better
    /// [kept](Self::keep).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use turnbuckle_server::{Context, Handle, Held, ToolError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Cart { items: Vec<String> }
    /// # impl Held for Cart { const NAME: &'static str = "cart"; }
    /// async fn begin(cx: Context) -> Result<Handle<Cart>, ToolError> {
    ///     let cart = Cart { items: Vec::new() };
    ///     Ok(cx.seal(&cart, Duration::from_secs(3600))?)
    /// }
    /// ```
    pub fn seal<T: Held>(&self, value: &T, lifetime: Duration) -> Result<Handle<T>, HandleError> {
        self.handle(Content::Whole(value), lifetime)
    }

    /// Keeps a value in the server's store, and returns a handle with its name there.
    ///
    /// Any instance with the same store can open it. A handler that asks the client runs again from the top, so there it
    /// belongs into [`once`](Self::once), as other effects do.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use turnbuckle_server::{Context, Handle, Held, ToolError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Report { pages: Vec<String> }
    /// # impl Held for Report { const NAME: &'static str = "report"; }
    /// async fn draft(cx: Context) -> Result<Handle<Report>, ToolError> {
    ///     let report = Report { pages: vec!["…".repeat(100_000)] };
    ///     Ok(cx.keep(&report, Duration::from_secs(3600)).await?)
    /// }
    /// ```
    pub async fn keep<T: Held>(
        &self,
        value: &T,
        lifetime: Duration,
    ) -> Result<Handle<T>, HandleError> {
        let bytes = serde_json::to_vec(value).map_err(HandleError::Unwritable)?;
        let server = self.server();
        let journals = &server.store_ref().journals;
        let kept = match owner(server, self.principal()) {
            Some(owner) => journals.put_for(&owner, bytes.into(), lifetime).await,
            None => journals.put(bytes.into(), lifetime).await,
        };
        let id = kept.map_err(HandleError::Store)?;
        self.handle(Content::<()>::Kept(id.to_string()), lifetime)
    }

    /// Returns the value that a handle stands for.
    ///
    /// ```
    /// # use turnbuckle_server::{Context, Handle, Held, ToolError};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Cart { items: Vec<String> }
    /// # impl Held for Cart { const NAME: &'static str = "cart"; }
    /// async fn count(handle: Handle<Cart>, cx: Context) -> Result<usize, ToolError> {
    ///     // The model reads that it has to start again, if it comes to that.
    ///     let cart = cx.open(&handle).await?;
    ///     Ok(cart.items.len())
    /// }
    /// ```
    pub async fn open<T: Held>(&self, handle: &Handle<T>) -> Result<T, HandleError> {
        if handle.text.len() > LONGEST {
            return Err(HandleError::Invalid);
        }
        let opened = self
            .server()
            .keys()
            .open(&handle.text, &self.purpose::<T>());
        let opened = opened.map_err(|_| HandleError::Invalid)?;
        let sealed: Sealed<T> =
            serde_json::from_slice(&opened).map_err(|_| HandleError::Invalid)?;
        if sealed.expires <= millis(clock::since_1970()) {
            return Err(HandleError::Invalid);
        }
        match sealed.content {
            Content::Whole(value) => Ok(value),
            Content::Kept(id) => {
                let id = id.parse().map_err(|_| HandleError::Invalid)?;
                let kept = self.server().store_ref().journals.get(&id).await;
                let bytes = kept.map_err(HandleError::Store)?;
                let bytes = bytes.ok_or(HandleError::Invalid)?;
                serde_json::from_slice(&bytes).map_err(|_| HandleError::Invalid)
            }
        }
    }

    fn handle<T: Held>(
        &self,
        content: Content<impl Serialize>,
        lifetime: Duration,
    ) -> Result<Handle<T>, HandleError> {
        let expires = millis(clock::since_1970().saturating_add(lifetime));
        let sealed = serde_json::to_vec(&Sealed { expires, content });
        let sealed = sealed.map_err(HandleError::Unwritable)?;
        if sealed.len() > LARGEST {
            return Err(HandleError::TooLarge {
                size: sealed.len(),
                limit: LARGEST,
            });
        }
        let text = self.server().keys().seal(&sealed, &self.purpose::<T>());
        Ok(Handle {
            text,
            of: PhantomData,
        })
    }

    /// Binds a handle to who may open it, where, and as what.
    fn purpose<T: Held>(&self) -> Vec<u8> {
        let who = self
            .principal()
            .map(|who| (&*who.issuer, &*who.subject, who.client.as_deref()));
        let bound = serde_json::to_vec(&(self.server().name(), who, T::NAME));
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
    pub(crate) fn into_tool_error(self) -> ToolError {
        match self.for_caller() {
            Some(message) => ToolError::new(message),
            None => ToolError::internal(self),
        }
    }

    pub(crate) fn into_request_error(self) -> RequestError {
        match self.for_caller() {
            Some(message) => RequestError::invalid(message),
            None => RequestError::internal(self),
        }
    }

    /// What the caller is told, where it can do something about it.
    fn for_caller(&self) -> Option<String> {
        match self {
            Self::Invalid => Some(self.to_string()),
            Self::Store(StoreError::TooMany { .. }) => {
                Some("as much is kept for this caller as may be; try again later".to_owned())
            }
            _ => None,
        }
    }
}

impl<T> Handle<T> {
    /// The text that travels.
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
            of: PhantomData,
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
            of: PhantomData,
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
