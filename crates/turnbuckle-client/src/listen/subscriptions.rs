//! The listen requests that are open, and the legacy subscriptions that several listeners share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use turnbuckle_protocol::RequestId;
use turnbuckle_protocol::json;
use turnbuckle_protocol::jsonrpc::Params;
use turnbuckle_protocol::meta::keys;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{
    ResourceUpdatedParams, SubscriptionFilter, SubscriptionsAcknowledgedParams,
};

use crate::change::Change;

/// What came for a listen request.
#[derive(Debug)]
pub(super) enum Told {
    Acknowledged(SubscriptionFilter),
    Change(Change),
    End,
}

/// What waits to be heard, and whether something had no more room there.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) told: mpsc::Receiver<Told>,
    pub(super) missed: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Outlet {
    tell: mpsc::Sender<Told>,
    missed: Arc<AtomicBool>,
}

impl Outlet {
    fn tell(&self, told: Told) {
        if self.tell.try_send(told).is_err() {
            self.missed.store(true, Ordering::Release);
        }
    }
}

/// Who listens.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    requests: Mutex<HashMap<RequestId, Outlet>>,
    /// How many listen to each resource of a server with a handshake. Held while the server is told, so that it
    /// hears of beginnings and ends in their order.
    pub(super) resources: tokio::sync::Mutex<HashMap<String, usize>>,
}

impl Subscriptions {
    /// Waits for what comes for a listen request, until [`close`](Self::close).
    pub(super) fn open(&self, id: RequestId) -> Inbox {
        let (tell, told) = mpsc::channel(super::UNREAD);
        let missed = Arc::new(AtomicBool::new(false));
        let outlet = Outlet {
            tell,
            missed: Arc::clone(&missed),
        };
        self.requests().insert(id, outlet);
        Inbox { told, missed }
    }

    pub(super) fn close(&self, id: &RequestId) {
        self.requests().remove(id);
    }

    /// Takes a notification; one that bears no subscription's id is not for us.
    pub(crate) fn told(&self, method: &str, params: &str) {
        let requests = self.requests();
        if requests.is_empty() {
            return;
        }
        let Some(outlet) = subscription(params).and_then(|id| requests.get(&id)) else {
            return;
        };
        let Some(told) = read(method, params) else {
            return;
        };
        outlet.tell(told);
    }

    /// The server ends a subscription.
    pub(crate) fn end(&self, id: &RequestId) {
        // Where there is no room for it, the listener hears the end from there being no outlet any more.
        if let Some(outlet) = self.requests().remove(id) {
            outlet.tell(Told::End);
        }
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, Outlet>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finds the listen request that a notification belongs to.
fn subscription(params: &str) -> Option<RequestId> {
    let params = Params::from_json(params).ok()?;
    let meta = Params::from_json(params.get("_meta")?).ok()?;
    RequestId::from_json(meta.get(keys::SUBSCRIPTION_ID)?).ok()
}

fn read(name: &str, params: &str) -> Option<Told> {
    const ACKNOWLEDGED: &str = method::SUBSCRIPTIONS_ACKNOWLEDGED.name;
    const TOOLS: &str = method::TOOLS_LIST_CHANGED.name;
    const PROMPTS: &str = method::PROMPTS_LIST_CHANGED.name;
    const RESOURCES: &str = method::RESOURCES_LIST_CHANGED.name;
    const UPDATED: &str = method::RESOURCES_UPDATED.name;
    const TASK: &str = method::TASKS_CHANGED.name;
    Some(match name {
        ACKNOWLEDGED => {
            let params: SubscriptionsAcknowledgedParams = json::from_str(params).ok()?;
            Told::Acknowledged(params.notifications)
        }
        TOOLS => Told::Change(Change::Tools),
        PROMPTS => Told::Change(Change::Prompts),
        RESOURCES => Told::Change(Change::Resources),
        UPDATED => {
            let params: ResourceUpdatedParams = json::from_str(params).ok()?;
            Told::Change(Change::Resource { uri: params.uri })
        }
        TASK => Told::Change(Change::Task(json::from_str(params).ok()?)),
        _ => return None,
    })
}
