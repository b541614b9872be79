//! A registry that one instance can lose, and two instances of which one uses it.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use turnbuckle_server::{Server, http::Http};
use turnbuckle_store::{
    BoxFuture, InstanceId, InstanceInbox, InstanceMessage, InstanceRegistry, InstanceSlot, Store,
    StoreError,
};

use crate::http::test_client::HttpTestClient;

/// A registry that fails while it is cut off.
pub(crate) struct TestRegistry {
    inner: Arc<dyn InstanceRegistry>,
    is_cut_off: AtomicBool,
    joined: Mutex<Vec<InstanceId>>,
    left: Mutex<Vec<InstanceId>>,
}

impl TestRegistry {
    /// Returns the store for one instance, with a registry of its own in front of the shared one.
    pub(crate) fn for_store(store: &Store) -> (Store, Arc<Self>) {
        let registry = Arc::new(Self {
            inner: store.instances.clone(),
            is_cut_off: AtomicBool::new(false),
            joined: Mutex::default(),
            left: Mutex::default(),
        });
        let mut store = store.clone();
        store.instances = registry.clone();
        (store, registry)
    }

    pub(crate) fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reconnect(&self) {
        self.is_cut_off.store(false, Ordering::Relaxed);
    }

    /// The ids that were given to the instance.
    pub(crate) fn joined(&self) -> Vec<InstanceId> {
        self.joined.lock().unwrap().clone()
    }

    /// The ids that the instance has given up.
    pub(crate) fn left(&self) -> Vec<InstanceId> {
        self.left.lock().unwrap().clone()
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.is_cut_off.load(Ordering::Relaxed) {
            return Err(StoreError::unavailable("cut off"));
        }
        Ok(())
    }
}

impl InstanceRegistry for TestRegistry {
    fn join(&self) -> BoxFuture<'_, Result<InstanceId, StoreError>> {
        Box::pin(async {
            self.check()?;
            let id = self.inner.join().await?;
            self.joined.lock().unwrap().push(id);
            Ok(id)
        })
    }

    fn renew<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async {
            self.check()?;
            self.inner.renew(id).await
        })
    }

    fn leave<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async {
            self.check()?;
            self.left.lock().unwrap().push(*id);
            self.inner.leave(id).await
        })
    }

    fn is_alive<'a>(&'a self, id: &'a InstanceId) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async {
            self.check()?;
            self.inner.is_alive(id).await
        })
    }

    fn take_expired(&self) -> BoxFuture<'_, Result<Vec<InstanceId>, StoreError>> {
        Box::pin(async {
            self.check()?;
            self.inner.take_expired().await
        })
    }

    fn send(
        &self,
        slot: InstanceSlot,
        message: InstanceMessage,
    ) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            self.check()?;
            self.inner.send(slot, message).await
        })
    }

    fn inbox(&self, id: &InstanceId) -> InstanceInbox {
        self.inner.inbox(id)
    }
}

/// Two instances on one store. The first can lose its registry.
pub(crate) struct TwoInstances {
    pub(crate) first: HttpTestClient,
    pub(crate) second: HttpTestClient,
    pub(crate) store: Store,
    pub(crate) registry: Arc<TestRegistry>,
}

impl TwoInstances {
    pub(crate) fn new(server: impl Fn() -> Server) -> Self {
        Self::with_store(Store::memory().shared(), server)
    }

    pub(crate) fn with_store(store: Store, server: impl Fn() -> Server) -> Self {
        let (of_first, registry) = TestRegistry::for_store(&store);
        let keys = ["the same secret of all instances"];
        let client = |store: Store| {
            let server = server().state_keys(keys).store(store);
            HttpTestClient::single(Http::new(server))
        };
        Self {
            first: client(of_first),
            second: client(store.clone()),
            store,
            registry,
        }
    }

    /// Begins a session at the first instance, for both.
    pub(crate) async fn in_session(mut self, revision: &str) -> Self {
        self.first = self.first.in_session(revision).await;
        self.second.session.clone_from(&self.first.session);
        self.second.version.clone_from(&self.first.version);
        self
    }
}
