//! Connects to a target and negotiates a revision.

use std::sync::{Arc, Mutex, Weak};

use arc_swap::ArcSwap;
use tokio::task::AbortHandle;
use turnbuckle_protocol::{jsonrpc::write_notification, method, types::SetLevelParams};

use crate::{
    builder::{ClientBuilder, LifecycleMode},
    callbacks::Roots,
    client::{ClientInner, RequestIds},
    error::{ConnectError, TransportError},
    inbound::InboundRouter,
    lifecycle::{self, LifecycleProbe, Negotiated, RevisionRules},
    target::Target,
    tools::ToolCache,
    transport::{
        Transport, ndjson,
        stdio::{ChildTransport, ServerCommand},
    },
};

impl ClientInner {
    /// Connects and negotiates a revision.
    pub(crate) async fn connect(
        settings: ClientBuilder,
        target: Target,
        router: Arc<InboundRouter>,
    ) -> Result<Arc<Self>, ConnectError> {
        match target {
            Target::Ndjson(streams) => {
                let transport =
                    Transport::Ndjson(ndjson::NdjsonConnection::start(streams, &router));
                Self::negotiate(settings, transport, None, router).await
            }
            Target::Http(http) => {
                crate::transport::http::connect_http(http, settings, router).await
            }
            Target::Unix(unix) => {
                let streams = unix.open().await;
                let streams = streams.map_err(|error| ConnectError::Unreachable(error.into()))?;
                let transport =
                    Transport::Ndjson(ndjson::NdjsonConnection::start(streams, &router));
                Self::negotiate(settings, transport, None, router).await
            }
            Target::Command(child) => Self::connect_child(settings, child, router).await,
        }
    }

    /// Starts the server. Some legacy servers exit when they receive a request before `initialize`; such a server is
    /// started again, with the legacy lifecycle.
    async fn connect_child(
        mut settings: ClientBuilder,
        child: ServerCommand,
        router: Arc<InboundRouter>,
    ) -> Result<Arc<Self>, ConnectError> {
        let name = Some(child.command_line());
        let transport = Transport::Child(ChildTransport::start(child.clone(), &router)?);
        match Self::negotiate(
            settings.clone(),
            transport,
            name.clone(),
            Arc::clone(&router),
        )
        .await
        {
            Err(ConnectError::Unreachable(error))
                if error.is_server_gone() && settings.lifecycle_mode == LifecycleMode::Auto =>
            {
                tracing::debug!(%error, "restarting the server for the legacy lifecycle");
                settings.lifecycle_mode = LifecycleMode::Legacy;
                let cache = settings.lifecycle_cache.clone();
                let transport = Transport::Child(ChildTransport::start(child, &router)?);
                let inner = Self::negotiate(settings, transport, name, router).await?;
                if let Some(name) = &inner.name {
                    cache.set(name, inner.negotiated().server.era);
                }
                Ok(inner)
            }
            outcome => outcome,
        }
    }

    /// Negotiates a revision over a transport.
    pub(crate) async fn negotiate(
        settings: ClientBuilder,
        transport: Transport,
        name: Option<String>,
        router: Arc<InboundRouter>,
    ) -> Result<Arc<Self>, ConnectError> {
        // A server may send requests before negotiation is done, and right after the handshake, so the client must be
        // set before.
        let roots = settings.callbacks.roots();
        let log_level = settings.log_level;
        let inner = Arc::new(Self {
            _roots_notifier: roots.map(|roots| RootsNotifier::start(roots, &router)),
            negotiated: ArcSwap::from_pointee(Negotiated::before_negotiation(
                settings.lifecycle_mode,
            )),
            transport,
            ids: RequestIds::default(),
            settings,
            tools: ToolCache::default(),
            router,
            name,
            renewing: tokio::sync::Mutex::default(),
            log_level: Mutex::new(log_level),
        });
        inner.router.set_client(Arc::downgrade(&inner));
        match inner.finish_connect().await {
            Ok(()) => Ok(inner),
            Err(error) => {
                inner.transport.close(&inner.router).await;
                Err(error)
            }
        }
    }

    /// Renews the session in a separate task, so that a cancelled caller does not leave it half initialized.
    pub(crate) async fn renew_session(
        self: Arc<Self>,
        current: Arc<RevisionRules>,
    ) -> Result<(), ConnectError> {
        let renewing = tokio::spawn(async move { self.renew(&current).await });
        let gone = || ConnectError::Unreachable(TransportError::SessionEnded);
        renewing.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Renews the session, unless another caller has done so since the rules of `current` were negotiated.
    pub(crate) async fn renew(&self, current: &Arc<RevisionRules>) -> Result<(), ConnectError> {
        let _guard = self.renewing.lock().await;
        if !Arc::ptr_eq(&self.rules(), current) {
            return Ok(());
        }
        // Requests of the old session must not be answered in the new one.
        self.router.abort_server_requests();
        self.finish_connect().await?;
        self.tools.invalidate_output_schemas();
        self.router.notify_gap();
        Ok(())
    }

    /// Negotiates a revision, and stores the result.
    async fn finish_connect(&self) -> Result<(), ConnectError> {
        let current = |name| self.settings.lifecycle_cache.get(name);
        let cached_era = self.name.as_deref().and_then(current);
        let negotiated =
            lifecycle::negotiate(&self.probe(), self.settings.lifecycle_mode, cached_era).await?;
        // A server that was probed only with the legacy lifecycle may be a modern one.
        let is_detected = self.settings.lifecycle_mode != LifecycleMode::Legacy;
        if let Some(name) = self.name.as_ref().filter(|_| is_detected) {
            self.settings
                .lifecycle_cache
                .set(name, negotiated.server.era);
        }
        self.transport
            .on_negotiated(&negotiated.rules, &self.router)
            .await;
        self.send_log_level(&negotiated).await;
        Ok(())
    }

    /// Sends the log level to a server that stores it in the session.
    async fn send_log_level(&self, negotiated: &Negotiated) {
        let declared = negotiated.server.capabilities.logging.is_some();
        if negotiated.rules.log_level_per_request || !declared {
            return;
        }
        if let Some(level) = self.log_level() {
            let params = SetLevelParams::new(level);
            let rules = Arc::clone(&negotiated.rules);
            // A connection without the requested log level is still usable.
            if let Err(error) = self
                .probe()
                .send(&method::LOGGING_SET_LEVEL, &params, rules)
                .await
            {
                tracing::debug!(%error, "the log level was not set");
            }
        }
    }

    fn probe(&self) -> LifecycleProbe<'_> {
        LifecycleProbe {
            transport: &self.transport,
            router: &self.router,
            ids: &self.ids,
            info: &self.settings.info,
            capabilities: &self.settings.capabilities,
            timeout: self.settings.timeouts.idle,
            negotiated: &self.negotiated,
        }
    }
}

/// A task that notifies the server of changed roots, until this is dropped.
#[derive(Debug)]
pub(super) struct RootsNotifier(AbortHandle);

impl RootsNotifier {
    /// Starts to notify the server of changes.
    pub(super) fn start(roots: &Roots, router: &Arc<InboundRouter>) -> Self {
        let mut changes = roots.subscribe();
        let router: Weak<InboundRouter> = Arc::downgrade(router);
        let task = tokio::spawn(async move {
            while changes.changed().await.is_ok() {
                let Some(router) = router.upgrade() else {
                    return;
                };
                let Some(client) = router.client() else {
                    return;
                };
                router
                    .until_client_dropped(async move { client.notify_roots_changed().await })
                    .await;
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for RootsNotifier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ClientInner {
    async fn notify_roots_changed(&self) {
        if !self.rules().roots_notifications {
            return;
        }
        let mut message = Vec::new();
        let name = method::ROOTS_LIST_CHANGED.name;
        write_notification(&mut message, name, &()).expect("serializing a constant does not fail");
        if let Err(error) = self.send(message).await {
            tracing::debug!(%error, "the server was not notified that the roots changed");
        }
    }
}
