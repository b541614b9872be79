//! The listen request at a modern server. It is sent again when it has ended, and its notifications arrive at the handler
//! of the connection.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{task::AbortHandle, time::Instant};
use turnbuckle_client::{CallError, Client, Subscription, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{convert::ListKind, lock, upstream::connection::ConnectionState};

/// The first and the maximum delay before another listen request.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// A listen request that is kept open until this is dropped.
pub(super) struct ListenStream(AbortHandle);

impl Drop for ListenStream {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ListenStream {
    /// Sends a listen request, and returns what the server granted.
    pub(super) async fn open(
        state: &Arc<ConnectionState>,
        client: &Client,
        filter: SubscriptionFilter,
    ) -> Result<(Self, SubscriptionFilter), CallError> {
        let (subscription, granted) = listen(client, &filter).await?;
        let listener = Listener::new(state, client, filter);
        state.granted.start(listener.id, granted.clone());
        let task = tokio::spawn(listener.run(Some(subscription)));
        Ok((Self(task.abort_handle()), granted))
    }

    /// Sends a listen request in the background, until the server grants it.
    pub(super) fn open_later(
        state: &Arc<ConnectionState>,
        client: &Client,
        filter: SubscriptionFilter,
    ) -> Self {
        let listener = Listener::new(state, client, filter);
        state
            .granted
            .start(listener.id, SubscriptionFilter::default());
        Self(tokio::spawn(listener.run(None)).abort_handle())
    }
}

/// What the newest listen request of a connection announces at the moment.
#[derive(Default)]
pub(super) struct GrantedChanges(Mutex<(u64, SubscriptionFilter)>);

impl GrantedChanges {
    fn start(&self, id: u64, granted: SubscriptionFilter) {
        *lock(&self.0) = (id, granted);
    }

    /// Changes what a listen request announces, unless there is a newer one.
    fn set(&self, id: u64, granted: SubscriptionFilter) {
        let mut current = lock(&self.0);
        if current.0 == id {
            current.1 = granted;
        }
    }

    /// Records that the listen request has ended.
    pub(super) fn clear(&self) {
        self.start(0, SubscriptionFilter::default());
    }

    /// Returns whether changes of a list are announced.
    pub(super) fn has(&self, kind: ListKind) -> bool {
        let granted = &lock(&self.0).1;
        let granted = match kind {
            ListKind::Tools => granted.tools_list_changed,
            ListKind::Prompts => granted.prompts_list_changed,
            ListKind::Resources | ListKind::Templates => granted.resources_list_changed,
        };
        granted == Some(true)
    }
}

/// Keeps a listen request open.
struct Listener {
    /// Later listen requests of a connection have greater ids.
    id: u64,
    state: Weak<ConnectionState>,
    client: Client,
    filter: SubscriptionFilter,
}

impl Listener {
    fn new(state: &Arc<ConnectionState>, client: &Client, filter: SubscriptionFilter) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            state: Arc::downgrade(state),
            client: client.clone(),
            filter,
        }
    }

    async fn run(self, mut subscription: Option<Subscription>) {
        let mut delay = RETRY_DELAY.0;
        loop {
            if let Some(subscription) = subscription.take() {
                let began = Instant::now();
                self.read(subscription).await;
                if self.client.ended().is_some() {
                    return;
                }
                self.set_granted(SubscriptionFilter::default());
                if began.elapsed() > RETRY_DELAY.1 {
                    delay = RETRY_DELAY.0;
                }
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(RETRY_DELAY.1);
            match listen(&self.client, &self.filter).await {
                Ok((renewed, granted)) => {
                    self.set_granted(granted);
                    subscription = Some(renewed);
                }
                Err(_) if self.client.ended().is_some() => return,
                Err(error) => tracing::debug!(%error, "a listen request has failed"),
            }
        }
    }

    /// Reads events until the end. A lost connection is renewed by the subscription itself.
    async fn read(&self, mut subscription: Subscription) {
        while let Some(Ok(event)) = subscription.next().await {
            match event {
                SubscriptionEvent::Acknowledged(granted) => self.set_granted(granted),
                SubscriptionEvent::Interrupted => self.set_granted(SubscriptionFilter::default()),
                SubscriptionEvent::Ended => return,
                _ => {}
            }
        }
    }

    /// Records what the server announces from now on. Changes before may have been missed.
    fn set_granted(&self, granted: SubscriptionFilter) {
        if let Some(state) = self.state.upgrade() {
            state.granted.set(self.id, granted);
            state.lists_changed(&ListKind::ALL, false);
        }
    }
}

async fn listen(
    client: &Client,
    filter: &SubscriptionFilter,
) -> Result<(Subscription, SubscriptionFilter), CallError> {
    let mut subscription = client.listen(filter.clone()).await?;
    let granted = match subscription.next().await {
        Some(Ok(SubscriptionEvent::Acknowledged(granted))) => granted,
        Some(Err(error)) => return Err(error),
        _ => SubscriptionFilter::default(),
    };
    Ok((subscription, granted))
}
