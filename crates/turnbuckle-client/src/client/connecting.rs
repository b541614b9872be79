//! From a target to a client that has agreed with its server.

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::SetLevelParams;

use super::telling::Telling;
use super::{Ids, Inner};
use crate::builder::{ClientBuilder, EraChoice};
use crate::error::{ConnectError, TransportError};
use crate::hub::Hub;
use crate::lifecycle::{self, Agreed, Asking};
use crate::lines;
use crate::stdio::{Child, Running};
use crate::target::Target;
use crate::tools::KnownTools;
use crate::transport::Transport;

impl Inner {
    /// Connects, and agrees on a revision.
    pub(crate) async fn connect(
        settings: ClientBuilder,
        target: Target,
        hub: Arc<Hub>,
    ) -> Result<Arc<Self>, ConnectError> {
        match target {
            Target::Lines(lines) => {
                let transport = Transport::Lines(lines::Connection::start(lines, &hub));
                Self::agree(settings, transport, None, hub).await
            }
            Target::Http(http) => crate::http::reach(http, settings, hub).await,
            Target::Unix(unix) => {
                let lines = unix.open().await;
                let lines = lines.map_err(|error| ConnectError::Unreachable(error.into()))?;
                let transport = Transport::Lines(lines::Connection::start(lines, &hub));
                Self::agree(settings, transport, None, hub).await
            }
            Target::Child(child) => Self::connect_child(settings, child, hub).await,
        }
    }

    /// Starts a server. Some older ones die of being asked anything before `initialize`; such a one is started again,
    /// and asked that.
    async fn connect_child(
        mut settings: ClientBuilder,
        child: Child,
        hub: Arc<Hub>,
    ) -> Result<Arc<Self>, ConnectError> {
        let name = Some(child.command_line());
        let transport = Transport::Child(Running::start(child.clone(), &hub)?);
        match Self::agree(settings.clone(), transport, name.clone(), Arc::clone(&hub)).await {
            Err(ConnectError::Unreachable(error))
                if error.is_leaving() && settings.choice == EraChoice::Auto =>
            {
                tracing::debug!(%error, "starting it again for a handshake");
                settings.choice = EraChoice::Legacy;
                let memory = settings.memory.clone();
                let transport = Transport::Child(Running::start(child, &hub)?);
                let inner = Self::agree(settings, transport, name, hub).await?;
                if let Some(name) = &inner.name {
                    memory.set(name, inner.agreed().server.era);
                }
                Ok(inner)
            }
            outcome => outcome,
        }
    }

    /// Agrees on a revision over a transport.
    pub(crate) async fn agree(
        settings: ClientBuilder,
        transport: Transport,
        name: Option<String>,
        hub: Arc<Hub>,
    ) -> Result<Arc<Self>, ConnectError> {
        // A server may ask before everything is agreed, and its first real question follows the handshake at once: so
        // there is somebody to answer from the beginning.
        let roots = settings.callbacks.roots();
        let log_level = settings.log_level;
        let inner = Arc::new(Self {
            _telling: roots.map(|roots| Telling::start(roots, &hub)),
            agreed: ArcSwap::from_pointee(Agreed::nothing_yet(settings.choice)),
            transport,
            ids: Ids::default(),
            settings,
            tools: KnownTools::default(),
            hub,
            name,
            renewing: tokio::sync::Mutex::default(),
            log_level: Mutex::new(log_level),
        });
        inner.hub.belongs_to(Arc::downgrade(&inner));
        match inner.settle().await {
            Ok(()) => Ok(inner),
            Err(error) => {
                inner.transport.close(&inner.hub).await;
                Err(error)
            }
        }
    }

    /// Begins a new session in a task of its own: whoever gives up meanwhile must not leave half of one behind.
    pub(crate) async fn renewed(self: Arc<Self>, known: Arc<Agreed>) -> Result<(), ConnectError> {
        let renewing = tokio::spawn(async move { self.renew(&known).await });
        let gone = || ConnectError::Unreachable(TransportError::SessionEnded);
        renewing.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Begins a new session, unless somebody else did so since `known` was agreed.
    pub(crate) async fn renew(&self, known: &Arc<Agreed>) -> Result<(), ConnectError> {
        let _alone = self.renewing.lock().await;
        if !Arc::ptr_eq(&self.agreed(), known) {
            return Ok(());
        }
        // What the old one asked can only be mistaken for something else in the new one.
        self.hub.forget_asked();
        self.settle().await?;
        self.tools.void_promises();
        self.hub.gap();
        Ok(())
    }

    /// Agrees on a revision, and lets everyone know who has to.
    async fn settle(&self) -> Result<(), ConnectError> {
        let known = |name| self.settings.memory.get(name);
        let remembered = self.name.as_deref().and_then(known);
        let agreed = lifecycle::agree(&self.asking(), self.settings.choice, remembered).await?;
        // Who was not asked for anything else may still speak it.
        let found = self.settings.choice != EraChoice::Legacy;
        if let Some(name) = self.name.as_ref().filter(|_| found) {
            self.settings.memory.set(name, agreed.server.era);
        }
        self.transport.agreed(&agreed.rules, &self.hub).await;
        self.tell_log_level(&agreed).await;
        Ok(())
    }

    /// Tells a server that remembers it from which level on log messages are wanted.
    async fn tell_log_level(&self, agreed: &Agreed) {
        let declared = agreed.server.capabilities.logging.is_some();
        if agreed.rules.log_level_per_request || !declared {
            return;
        }
        if let Some(level) = self.log_level() {
            let method = method::LOGGING_SET_LEVEL.name;
            let params = SetLevelParams::new(level);
            let rules = Arc::clone(&agreed.rules);
            // Too many or too few log messages are no reason to have no connection.
            if let Err(error) = self.asking().ask(method, &params, rules).await {
                tracing::debug!(%error, "the level of log messages was not set");
            }
        }
    }

    fn asking(&self) -> Asking<'_> {
        Asking {
            transport: &self.transport,
            hub: &self.hub,
            ids: &self.ids,
            info: &self.settings.info,
            capabilities: &self.settings.capabilities,
            patience: self.settings.patience.silence,
            agreed: &self.agreed,
        }
    }
}
