//! `_meta`: what travels beside a payload.
//!
//! [`Meta`] is what we write and keep; [`RequestMeta`] reads the keys of a request without building anything.

mod key;
mod object;
mod request;
mod trace;

pub use key::MetaKeyError;
pub use request::RequestMeta;
pub use trace::TraceContext;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::{Map, Value};

use self::object::Object;
use crate::{
    RequestId, json,
    types::{ClientCapabilities, Implementation, LogLevel, tasks::legacy::RelatedTask},
};

/// The keys that the specification gives a meaning.
pub mod keys {
    /// What progress notifications of this request are to bear.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// The revision of a request.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// Who asks.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// What the asking client can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// From which level on log messages are wanted.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// Who answers.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The listen request that a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task that a message belongs to (2025-11-25).
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// What a model may be told while a task runs (2025-11-25).
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
/// Keys are checked when they are inserted; what a peer sent is passed on unchanged, whatever its keys. An empty
/// one takes no memory and is not written. What came is read when somebody looks into it for the first time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta(Option<Box<Object>>);

impl Meta {
    /// Creates an empty `_meta`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts a value of your own and returns the one it replaces.
    ///
    /// The key follows the grammar of the specification, and its prefix is not one that the specification keeps for
    /// itself.
    ///
    /// ```
    /// use turnbuckle_protocol::meta::Meta;
    ///
    /// let mut meta = Meta::new();
    /// assert!(meta.insert("example.com/colour", "red").is_ok());
    /// assert!(meta.insert("io.modelcontextprotocol/colour", "red").is_err());
    /// ```
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<Option<Value>, MetaKeyError> {
        let key = key.into();
        key::check(&key)?;
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
        // Shifting keeps the order of the others.
        let value = map.shift_remove(key);
        *self = Self::unchecked(map);
        value
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Says whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns keys and values in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries = self.0.iter().flat_map(|object| object.get());
        entries.map(|(key, value)| (&**key, value))
    }

    /// Returns what progress notifications of this request are to bear.
    pub fn progress_token(&self) -> Option<RequestId> {
        self.read(keys::PROGRESS_TOKEN)
    }

    /// Sets what progress notifications of this request are to bear.
    pub fn set_progress_token(&mut self, token: &RequestId) {
        self.write(keys::PROGRESS_TOKEN, token);
    }

    /// Returns the revision of the request.
    pub fn protocol_version(&self) -> Option<&str> {
        self.get(keys::PROTOCOL_VERSION)?.as_str()
    }

    /// Returns who asks.
    pub fn client_info(&self) -> Option<Implementation> {
        self.read(keys::CLIENT_INFO)
    }

    /// Returns what the asking client can do.
    pub fn client_capabilities(&self) -> Option<ClientCapabilities> {
        self.read(keys::CLIENT_CAPABILITIES)
    }

    /// Returns from which level on log messages are wanted.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.get(keys::LOG_LEVEL)?.as_str()?.parse().ok()
    }

    /// Returns who answers.
    pub fn server_info(&self) -> Option<Implementation> {
        self.read(keys::SERVER_INFO)
    }

    /// Returns the listen request that a notification belongs to.
    pub fn subscription_id(&self) -> Option<RequestId> {
        self.read(keys::SUBSCRIPTION_ID)
    }

    /// Names the listen request that a notification belongs to.
    pub fn set_subscription_id(&mut self, id: &RequestId) {
        self.write(keys::SUBSCRIPTION_ID, id);
    }

    /// Returns the task that a message belongs to.
    pub fn related_task(&self) -> Option<RelatedTask> {
        self.read(keys::RELATED_TASK)
    }

    /// Names the task that a message belongs to.
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

    /// Sets the W3C trace context; the state only counts beside a parent.
    pub fn set_trace_context(&mut self, traceparent: &str, tracestate: Option<&str>) {
        self.insert_reserved(keys::TRACEPARENT, traceparent);
        if let Some(state) = tracestate {
            self.insert_reserved(keys::TRACESTATE, state);
        }
    }

    /// Says which revision a request speaks, who asks and what the client can do.
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

    /// Says from which level on log messages are wanted.
    pub fn set_log_level(&mut self, level: LogLevel) {
        self.insert_reserved(keys::LOG_LEVEL, level.as_str());
    }

    /// Says who answers.
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
        // A peer may choose an id such as `1e400`, which no JSON value in memory can hold: better none than a wrong one.
        if let Ok(value) = serde_json::to_value(value) {
            self.insert_reserved(key, value);
        }
    }

    fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        json::from_value(self.get(key)?).ok()
    }
}

/// Takes an object whose keys are all your own.
impl TryFrom<Map<String, Value>> for Meta {
    type Error = MetaKeyError;

    fn try_from(map: Map<String, Value>) -> Result<Self, Self::Error> {
        for key in map.keys() {
            key::check(key)?;
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
        let object = Option::<Object>::deserialize(deserializer)?;
        Ok(Self(object.filter(|it| !it.is_empty()).map(Box::new)))
    }
}
