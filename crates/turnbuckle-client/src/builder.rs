//! The client builder: identity, capabilities, callbacks, limits and timeouts.

use std::{collections::HashMap, fmt, sync::Arc};

use turnbuckle_protocol::{
    RpcError,
    timeouts::Timeouts,
    types::{
        ClientCapabilities, CreateMessageResult, Implementation, LogLevel, LoggingMessageParams,
    },
};

use crate::{
    callbacks::{
        Callbacks, ElicitationAction, FormRequest, FormResponse, Roots, SamplingRequest,
        UrlElicitationRequest,
    },
    client::{Client, ClientInner},
    error::ConnectError,
    inbound::{
        InboundRouter, Observers,
        observers::{Anomaly, TracedMessage},
        recorder::Recorder,
    },
    lifecycle::LifecycleCache,
    target::{ClientLimits, Target},
    tools::ToolDigest,
};

/// Selects the lifecycle to use with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LifecycleMode {
    /// Detect the era; prefer the modern one.
    #[default]
    Auto,
    /// Only 2026-07-28.
    Modern,
    /// Only the revisions with an `initialize` handshake (2025-11-25 and before).
    Legacy,
}

/// Configures a client before it connects; created by [`Client::builder`].
#[derive(Clone)]
#[must_use = "a client builder does nothing until `connect` is called"]
pub struct ClientBuilder {
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) callbacks: Callbacks,
    pub(crate) lifecycle_mode: LifecycleMode,
    pub(crate) lifecycle_cache: LifecycleCache,
    pub(crate) timeouts: Timeouts,
    pub(crate) max_round_trips: usize,
    pub(crate) limits: ClientLimits,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) pinned: HashMap<String, ToolDigest>,
    pub(crate) validate_output: bool,
    pub(crate) observers: Observers,
}

impl ClientBuilder {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ClientCapabilities::default(),
            callbacks: Callbacks::default(),
            lifecycle_mode: LifecycleMode::default(),
            lifecycle_cache: LifecycleCache::default(),
            timeouts: Timeouts::default(),
            max_round_trips: 10,
            limits: ClientLimits::default(),
            log_level: None,
            pinned: HashMap::new(),
            validate_output: false,
            observers: Observers::default(),
        }
    }

    /// Sets the callback for form elicitation, and declares the capability to the server.
    ///
    /// ```
    /// use turnbuckle_client::{Client, FormRequest};
    ///
    /// let builder = Client::builder("agent", "1.0")
    ///     .on_form_elicitation(|form: FormRequest| async move { form.accept_defaults() });
    /// ```
    pub fn on_form_elicitation<F, A>(
        mut self,
        callback: impl Fn(FormRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = A> + Send + 'static,
        A: Into<FormResponse>,
    {
        self.callbacks.on_form_elicitation(callback);
        self
    }

    /// Sets the callback for URL elicitation, and declares the capability to the server.
    pub fn on_url_elicitation<F>(
        mut self,
        callback: impl Fn(UrlElicitationRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ElicitationAction> + Send + 'static,
    {
        self.callbacks.on_url_elicitation(callback);
        self
    }

    /// Sets the callback for sampling, and declares the capability to the server.
    ///
    /// A returned error is sent to the server; [`SamplingRequest::user_rejected`] is the error for a user who declined.
    pub fn on_sampling<F>(
        mut self,
        callback: impl Fn(SamplingRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.callbacks.on_sampling(callback);
        self
    }

    /// Declares to the server that sampling requests may contain tools.
    pub fn sampling_tools(mut self) -> Self {
        self.callbacks.sampling_tools();
        self
    }

    /// Lists these roots to the server, and notifies it when they change.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.callbacks.set_roots(roots);
        self
    }

    /// Sets the lifecycle mode. The default detects the era of the server.
    pub fn lifecycle_mode(mut self, mode: LifecycleMode) -> Self {
        self.lifecycle_mode = mode;
        self
    }

    /// Shares the cache of detected eras with other clients.
    pub fn lifecycle_cache(mut self, cache: LifecycleCache) -> Self {
        self.lifecycle_cache = cache;
        self
    }

    /// Sets the timeouts of calls. The default is one minute idle and ten minutes in total.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets the maximum number of `input_required` round trips per call. The default is 10. With 0, a call that needs
    /// input fails with [`CallError::InputRequired`](crate::CallError::InputRequired).
    pub fn max_round_trips(mut self, round_trips: usize) -> Self {
        self.max_round_trips = round_trips;
        self
    }

    /// Sets limits on what the client accepts from a server.
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Requests log messages of this level and above; [`Client::set_log_level`] changes it later.
    ///
    /// Without it, a server with a session sends messages of a level of its choice, and a server of 2026-07-28 sends
    /// none.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Pins tools: they are called only while the server lists them with these digests.
    ///
    /// Any other call of a pinned tool fails with [`CallError::PinMismatch`](crate::CallError::PinMismatch) before it
    /// is sent. The most recent listing counts. The tools are listed first if this tool was never listed, or if the
    /// server announced a change; a change that the server does not announce is found by the next listing. Tools
    /// without a pin are not checked.
    pub fn pinned_tools(
        mut self,
        pins: impl IntoIterator<Item = (impl Into<String>, ToolDigest)>,
    ) -> Self {
        let pins = pins.into_iter().map(|(name, digest)| (name.into(), digest));
        self.pinned.extend(pins);
        self
    }

    /// Calls `callback` with every log message.
    pub fn on_log(
        mut self,
        callback: impl Fn(LoggingMessageParams) + Send + Sync + 'static,
    ) -> Self {
        self.observers.log = Some(Arc::new(callback));
        self
    }

    /// Calls `callback` with every tolerated protocol violation and every changed tool.
    pub fn on_anomaly(mut self, callback: impl Fn(Anomaly) + Send + Sync + 'static) -> Self {
        self.observers.anomaly = Some(Arc::new(callback));
        self
    }

    /// Calls `callback` with every message that is sent or received.
    pub fn on_traffic(
        mut self,
        callback: impl Fn(TracedMessage<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.observers.message_trace = Some(Arc::new(callback));
        self
    }

    /// Records all traffic: messages, HTTP heads, lines of stderr, and what is not a message, with times.
    ///
    /// Entries are redacted. Without a recorder, nothing is copied or allocated for it.
    pub fn recorder(mut self, recorder: Recorder) -> Self {
        self.observers.recorder = Some(recorder);
        self
    }

    /// Connects to a server and negotiates a revision.
    pub async fn connect(mut self, target: impl Into<Target>) -> Result<Client, ConnectError> {
        let target = target.into();
        if self.observers.relay.is_some() {
            self.callbacks = Callbacks::default();
        } else {
            self.capabilities = self.callbacks.capabilities();
        }
        let router = InboundRouter::new(self.limits.clone(), self.observers.clone());
        let inner = ClientInner::connect(self, target, router).await?;
        inner.router.on_connected(&inner.transport);
        Ok(inner.into())
    }

    /// Declares extensions in addition to those of the callbacks. A relay declares exactly what its caller has set.
    pub(crate) fn declare(&mut self, extensions: &[&str]) {
        if self.observers.relay.is_some() {
            return;
        }
        let declared = self.capabilities.extensions.get_or_insert_default();
        for name in extensions {
            declared.insert((*name).to_owned(), serde_json::json!({}));
        }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
