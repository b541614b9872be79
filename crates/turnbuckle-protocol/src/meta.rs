//! The `_meta` object of payloads.
//!
//! [`Meta`] is the owned form; [`RequestMeta`] reads the keys of a request without allocating.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use self::object::LazyObject;
use crate::{
    RequestId, json,
    types::{ClientCapabilities, Implementation, LogLevel, tasks::legacy::RelatedTask},
};

mod object;
mod request;
mod trace;

pub use request::RequestMeta;
pub use trace::TraceContext;

/// The keys that the specification defines.
pub mod keys {
    /// The progress token of a request.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision of a request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// The client that sends the request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// The capabilities of the client.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// The minimum level of log messages.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The server that sends the result.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The `subscriptions/listen` request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// A message for the model while a task runs (2025-11-25).
    pub const MODEL_IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";
    /// W3C trace context: the parent.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context: the state.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// The `_meta` object of a payload.
///
/// Keys are checked when they are inserted; received keys are forwarded unchanged. An empty `_meta` does not allocate
/// and is not serialized. Received JSON is parsed on first access.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta(Option<Box<LazyObject>>);

impl Meta {
    /// Creates an empty `_meta`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts an application-defined value and returns the one it replaces.
    ///
    /// The key must follow the grammar of the specification and must not have a reserved prefix.
    ///
    /// ```
    /// use turnbuckle_protocol::meta::Meta;
    ///
    /// let mut meta = Meta::new();
    /// assert!(meta.insert("example.com/color", "red").is_ok());
    /// assert!(meta.insert("io.modelcontextprotocol/color", "red").is_err());
    /// ```
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<Option<Value>, MetaKeyError> {
        let key = key.into();
        check_key(&key)?;
        Ok(self.insert_reserved(key, value))
    }

    /// Inserts a value under a key that the specification defines.
    #[doc(hidden)]
    pub fn insert_reserved(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        let mut map = self.take();
        let replaced = map.insert(key, value);
        *self = Self::unchecked(map);
        replaced
    }

    /// Returns a value.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get().get(key)
    }

    /// Removes a value and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.get(key)?;
        let mut map = self.take();
        // `shift_remove` preserves the order of the other keys.
        let value = map.shift_remove(key);
        *self = Self::unchecked(map);
        value
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns whether `_meta` is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries = self.0.iter().flat_map(|object| object.get());
        entries.map(|(key, value)| (&**key, value))
    }

    /// Returns the progress token of the request.
    pub fn progress_token(&self) -> Option<RequestId> {
        self.read(keys::PROGRESS_TOKEN)
    }

    /// Sets the progress token of the request.
    pub fn set_progress_token(&mut self, token: &RequestId) {
        self.write(keys::PROGRESS_TOKEN, token);
    }

    /// Returns the revision of the request.
    pub fn protocol_version(&self) -> Option<&str> {
        self.get(keys::PROTOCOL_VERSION)?.as_str()
    }

    /// Returns the implementation info of the client.
    pub fn client_info(&self) -> Option<Implementation> {
        self.read(keys::CLIENT_INFO)
    }

    /// Returns the capabilities of the client.
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.read(keys::CLIENT_CAPABILITIES)
    }

    /// Returns the minimum level of log messages.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.get(keys::LOG_LEVEL)?.as_str()?.parse().ok()
    }

    /// Returns the implementation info of the server.
    pub fn server_info(&self) -> Option<Implementation> {
        self.read(keys::SERVER_INFO)
    }

    /// Returns the id of the `subscriptions/listen` request that a notification belongs to.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.read(keys::SUBSCRIPTION_ID)
    }

    /// Sets the id of the `subscriptions/listen` request that a notification belongs to.
    pub fn set_subscription_id(&mut self, id: &RequestId) {
        self.write(keys::SUBSCRIPTION_ID, id);
    }

    /// Returns the task that a message belongs to.
    pub fn related_task(&self) -> Option<RelatedTask> {
        self.read(keys::RELATED_TASK)
    }

    /// Sets the task that a message belongs to.
    pub fn set_related_task(&mut self, task: &RelatedTask) {
        self.write(keys::RELATED_TASK, task);
    }

    /// Returns the parent of the W3C trace context.
    pub fn traceparent(&self) -> Option<&str> {
        self.get(keys::TRACEPARENT)?.as_str()
    }

    /// Returns the state of the W3C trace context.
    pub fn tracestate(&self) -> Option<&str> {
        self.get(keys::TRACESTATE)?.as_str()
    }

    /// Returns the W3C baggage.
    pub fn baggage(&self) -> Option<&str> {
        self.get(keys::BAGGAGE)?.as_str()
    }

    /// Sets the W3C trace context; the state is valid only together with a parent.
    pub fn set_trace_context(&mut self, traceparent: &str, tracestate: Option<&str>) {
        self.insert_reserved(keys::TRACEPARENT, traceparent);
        if let Some(state) = tracestate {
            self.insert_reserved(keys::TRACESTATE, state);
        }
    }

    /// Sets the revision, the implementation info and the capabilities of the client.
    pub fn set_client(
        &mut self,
        protocol_version: &str,
        info: &Implementation,
        capabilities: &ClientCapabilities,
    ) {
        self.insert_reserved(keys::PROTOCOL_VERSION, protocol_version);
        self.write(keys::CLIENT_INFO, info);
        self.write(keys::CLIENT_CAPABILITIES, capabilities);
    }

    /// Sets the minimum level of log messages.
    pub fn set_log_level(&mut self, level: LogLevel) {
        self.insert_reserved(keys::LOG_LEVEL, level.as_str());
    }

    /// Sets the implementation info of the server.
    pub fn set_server_info(&mut self, info: &Implementation) {
        self.write(keys::SERVER_INFO, info);
    }

    fn unchecked(map: Map<String, Value>) -> Self {
        Self((!map.is_empty()).then(|| Box::new(map.into())))
    }

    fn take(&mut self) -> Map<String, Value> {
        let object = self.0.take();
        object.map(|object| object.into_inner()).unwrap_or_default()
    }

    fn write(&mut self, key: &str, value: &impl Serialize) {
        // A peer may choose an id such as `1e400` that `Value` cannot represent; omit it rather than alter it.
        if let Ok(value) = serde_json::to_value(value) {
            self.insert_reserved(key, value);
        }
    }

    fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        json::from_value(self.get(key)?).ok()
    }
}

/// Converts an object with application-defined keys.
impl TryFrom<Map<String, Value>> for Meta {
    type Error = MetaKeyError;

    fn try_from(map: Map<String, Value>) -> Result<Self, Self::Error> {
        for key in map.keys() {
            check_key(key)?;
        }
        Ok(Self::unchecked(map))
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(object) => object.get().serialize(serializer),
            None => serializer.collect_map(std::iter::empty::<(&str, &str)>()),
        }
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Option::<LazyObject>::deserialize(deserializer)?;
        Ok(Self(object.filter(|it| !it.is_empty()).map(Box::new)))
    }
}

/// The reason why a key cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetaKeyError {
    /// The prefix is not a series of labels.
    #[error(
        "the prefix of a `_meta` key must be labels separated by dots, each starting with a letter and ending with a letter or digit"
    )]
    Prefix,
    /// The name contains an invalid character.
    #[error(
        "the name of a `_meta` key must start and end with a letter or digit and contain only letters, digits, `-`, `_` and `.`"
    )]
    Name,
    /// The prefix or name is reserved by the specification.
    #[error("the key is reserved by the specification")]
    Reserved,
}

/// Names without prefix that the specification defines.
const RESERVED_NAMES: [&str; 4] = [
    keys::PROGRESS_TOKEN,
    keys::TRACEPARENT,
    keys::TRACESTATE,
    keys::BAGGAGE,
];

/// Returns an error if an application may not use the key.
fn check_key(key: &str) -> Result<(), MetaKeyError> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
        return Err(MetaKeyError::Prefix);
    }
    if !is_name(name) {
        return Err(MetaKeyError::Name);
    }
    let reserved = match prefix {
        Some(prefix) => is_reserved(prefix),
        None => RESERVED_NAMES.contains(&name),
    };
    if reserved {
        return Err(MetaKeyError::Reserved);
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match label.as_bytes() {
        [only] => only.is_ascii_alphabetic(),
        [first, middle @ .., last] => {
            first.is_ascii_alphabetic()
                && middle.iter().copied().all(inside)
                && last.is_ascii_alphanumeric()
        }
        [] => false,
    }
}

fn is_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match name.as_bytes() {
        // A key may be a prefix alone. Without prefix it is the empty string, which is allowed.
        [] => true,
        [only] => only.is_ascii_alphanumeric(),
        [first, middle @ .., last] => {
            first.is_ascii_alphanumeric()
                && middle.iter().copied().all(inside)
                && last.is_ascii_alphanumeric()
        }
    }
}

/// Since 2025-11-25 the second label decides; before, the second to last did. Both are respected, so that keys are
/// valid for every peer.
fn is_reserved(prefix: &str) -> bool {
    let owned = |label: Option<&str>| {
        label.is_some_and(|label| {
            label.eq_ignore_ascii_case("mcp") || label.eq_ignore_ascii_case("modelcontextprotocol")
        })
    };
    owned(prefix.split('.').nth(1)) || owned(prefix.rsplit('.').nth(1))
}
