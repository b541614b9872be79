//! Who a client is, what it can do for a server, and how it behaves.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use turnbuckle_protocol::RpcError;
use turnbuckle_protocol::pending::Patience;
use turnbuckle_protocol::types::{
    ClientCapabilities, CreateMessageResult, Implementation, LogLevel, LoggingMessageParams,
};

use crate::callbacks::{
    Callbacks, Consent, FormAnswer, FormRequest, Roots, SampleRequest, VisitRequest,
};
use crate::client::{Client, Inner};
use crate::error::ConnectError;
use crate::hub::{Hub, Listeners};
use crate::lifecycle::EraMemory;
use crate::limits::Limits;
use crate::oddity::Oddity;
use crate::target::Target;
use crate::tools::ToolDigest;
use crate::traffic::Traffic;

/// Which era to speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraChoice {
    /// Find out, and prefer the newer one.
    #[default]
    Auto,
    /// Only 2026-07-28.
    Modern,
    /// Only the revisions with a handshake.
    Legacy,
}

/// Describes a client before it is connected; made by [`Client::builder`].
#[derive(Clone)]
#[must_use = "a client does nothing before it is connected"]
pub struct ClientBuilder {
    pub(crate) info: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) callbacks: Callbacks,
    pub(crate) choice: EraChoice,
    pub(crate) memory: EraMemory,
    pub(crate) patience: Patience,
    pub(crate) max_rounds: usize,
    pub(crate) limits: Limits,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) pinned: HashMap<String, ToolDigest>,
    pub(crate) listeners: Listeners,
}

impl ClientBuilder {
    pub(crate) fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ClientCapabilities::default(),
            callbacks: Callbacks::default(),
            choice: EraChoice::default(),
            memory: EraMemory::default(),
            patience: Patience::default(),
            max_rounds: 10,
            limits: Limits::default(),
            log_level: None,
            pinned: HashMap::new(),
            listeners: Listeners::default(),
        }
    }

    /// Is asked to have a form filled in; the server is told that forms can be shown.
    ///
    /// ```
    /// use turnbuckle_client::{Client, FormRequest};
    ///
    /// let builder = Client::builder("agent", "1.0")
    ///     .on_form(|form: FormRequest| async move { form.accept_defaults() });
    /// ```
    pub fn on_form<F, A>(
        mut self,
        answer: impl Fn(FormRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = A> + Send + 'static,
        A: Into<FormAnswer>,
    {
        self.callbacks.on_form(answer);
        self
    }

    /// Is asked to send the user to a URL; the server is told that it can be done.
    pub fn on_visit<F>(mut self, answer: impl Fn(VisitRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Consent> + Send + 'static,
    {
        self.callbacks.on_visit(answer);
        self
    }

    /// Is asked what the model says; the server is told that there is one.
    ///
    /// The error is what the server is told; [`SampleRequest::refuse`] is that of a user who says no.
    pub fn on_sample<F>(
        mut self,
        answer: impl Fn(SampleRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.callbacks.on_sample(answer);
        self
    }

    /// Tells the server that the model can be given tools.
    pub fn sampling_tools(mut self) -> Self {
        self.callbacks.sampling_tools();
        self
    }

    /// Shows roots to the server, now and whenever they change.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.callbacks.set_roots(roots);
        self
    }

    /// Says which era to speak. Found out by default.
    pub fn era(mut self, choice: EraChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Shares what is known about the eras of servers with other clients.
    pub fn eras(mut self, memory: EraMemory) -> Self {
        self.memory = memory;
        self
    }

    /// Says how long to wait for answers: a minute of silence and ten minutes altogether by default.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Says how often a call goes along when the server asks for input first. Ten times by default; with 0 such a
    /// call ends with [`CallError::InputRequired`](crate::CallError::InputRequired).
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Bounds what is taken from a server.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Asks for log messages from this level on; [`Client::set_log_level`] changes it later.
    ///
    /// Without it a server with a handshake sends what it likes, and one of 2026-07-28 nothing.
    pub fn log_level(mut self, level: LogLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Calls these tools only as long as the server lists them just so, by their names and digests.
    ///
    /// Any other call of them ends with [`CallError::NotAsPinned`](crate::CallError::NotAsPinned) before it is sent. What was
    /// listed last counts. The tools are listed first if this one never was, or if the server said that they changed;
    /// one that changes and says nothing is found out by the next list. Tools without a pin are called as ever.
    pub fn pinned_tools(
        mut self,
        pins: impl IntoIterator<Item = (impl Into<String>, ToolDigest)>,
    ) -> Self {
        let pins = pins.into_iter().map(|(name, digest)| (name.into(), digest));
        self.pinned.extend(pins);
        self
    }

    /// Is called with every log message.
    pub fn on_log(mut self, tell: impl Fn(LoggingMessageParams) + Send + Sync + 'static) -> Self {
        self.listeners.log = Some(Arc::new(tell));
        self
    }

    /// Is called with everything that is odd about the server, but tolerated.
    pub fn on_oddity(mut self, tell: impl Fn(Oddity) + Send + Sync + 'static) -> Self {
        self.listeners.oddity = Some(Arc::new(tell));
        self
    }

    /// Is called with every message that passes.
    pub fn on_traffic(mut self, tell: impl Fn(Traffic<'_>) + Send + Sync + 'static) -> Self {
        self.listeners.traffic = Some(Arc::new(tell));
        self
    }

    /// Connects to a server, and agrees with it on a revision.
    pub async fn connect(mut self, target: impl Into<Target>) -> Result<Client, ConnectError> {
        let target = target.into();
        self.capabilities = self.callbacks.capabilities();
        let hub = Hub::new(self.limits.clone(), self.listeners.clone());
        Inner::connect(self, target, hub).await.map(Client::from)
    }

    /// Declares extensions beside those that come from callbacks.
    pub(crate) fn declare(&mut self, extensions: &[&str]) {
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
