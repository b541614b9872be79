//! From a target to a client that has agreed with its server.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::telling::Telling;
use super::{Ids, Inner};
use crate::builder::{ClientBuilder, EraChoice};
use crate::error::ConnectError;
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
                let transport = Transport::Child(Running::start(child, &hub)?);
                Self::agree(settings, transport, name, hub).await
            }
            outcome => outcome,
        }
    }

    /// Agrees on a revision over a transport.
    async fn agree(
        settings: ClientBuilder,
        transport: Transport,
        name: Option<String>,
        hub: Arc<Hub>,
    ) -> Result<Arc<Self>, ConnectError> {
        let ids = Ids::default();
        let remembered = name.as_ref().and_then(|name| settings.memory.get(name));
        let asking = asking(&settings, &transport, &ids, &hub);
        let agreed = match lifecycle::agree(&asking, settings.choice, remembered).await {
            Ok(agreed) => agreed,
            Err(error) => {
                transport.close().await;
                return Err(error);
            }
        };
        if let Some(name) = &name {
            settings.memory.set(name, agreed.server.era);
        }
        let roots = settings.callbacks.roots();
        let inner = Arc::new(Self {
            _telling: roots.map(|roots| Telling::start(roots, &hub)),
            agreed: ArcSwap::from_pointee(agreed),
            transport,
            ids,
            settings,
            tools: KnownTools::default(),
            hub,
            name,
            renewing: tokio::sync::Mutex::default(),
        });
        inner.hub.belongs_to(Arc::downgrade(&inner));
        inner.transport.agreed(&inner.rules(), &inner.hub).await;
        Ok(inner)
    }

    /// Begins a new session, unless somebody else did so since `known` was agreed.
    pub(super) async fn renew(&self, known: &Arc<Agreed>) -> Result<(), ConnectError> {
        let _alone = self.renewing.lock().await;
        if !Arc::ptr_eq(&self.agreed(), known) {
            return Ok(());
        }
        let asking = asking(&self.settings, &self.transport, &self.ids, &self.hub);
        let remembered = self
            .name
            .as_ref()
            .and_then(|name| self.settings.memory.get(name));
        let agreed = lifecycle::agree(&asking, self.settings.choice, remembered).await?;
        if let Some(name) = &self.name {
            self.settings.memory.set(name, agreed.server.era);
        }
        let rules = Arc::clone(&agreed.rules);
        self.agreed.store(Arc::new(agreed));
        self.transport.agreed(&rules, &self.hub).await;
        self.hub.gap();
        Ok(())
    }
}

fn asking<'c>(
    settings: &'c ClientBuilder,
    transport: &'c Transport,
    ids: &'c Ids,
    hub: &'c Arc<Hub>,
) -> Asking<'c> {
    Asking {
        transport,
        hub,
        ids,
        info: &settings.info,
        capabilities: &settings.capabilities,
        patience: settings.patience.silence,
    }
}
