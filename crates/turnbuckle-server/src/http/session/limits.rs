//! Session limits: the quota that a request counts against, and the idle session that ends when a limit is reached.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
};

use turnbuckle_protocol::RequestId;
use turnbuckle_store::{
    InstanceMessage, InstanceSlot, RequiredSpace, SessionId, SessionOwner, SessionRecord,
    SessionUpdate, StoreError, StreamId,
};

use crate::{
    http::{
        endpoint::{Endpoint, RequestHead},
        session::{ActiveSessions, run_to_end},
        stream::forwarding,
    },
    lifecycle::{GeneralChannel, SessionUser, SessionUsers},
    middleware::SessionKey,
    tasks,
};

/// Maximum number of evictions per request. More than one is needed if another caller takes the freed slot first.
const MAX_EVICTION_ATTEMPTS: usize = 4;

impl Endpoint {
    /// Creates a session. If a limit is reached, an idle session ends first.
    pub(crate) async fn create_session(
        self: &Arc<Self>,
        record: SessionRecord,
    ) -> Result<SessionId, StoreError> {
        let sessions = &self.server.store_ref().sessions;
        let mut attempts_left = MAX_EVICTION_ATTEMPTS;
        loop {
            let error = match sessions.create(record.clone()).await {
                Err(error @ (StoreError::Full { .. } | StoreError::TooMany { .. })) => error,
                created => return created,
            };
            let (endpoint, record) = (self.clone(), record.clone());
            let evicting = async move {
                let needed = RequiredSpace::Session(&record);
                endpoint.evict_idle_session(needed, None).await
            };
            if attempts_left == 0 || !run_to_end(evicting).await? {
                return Err(error);
            }
            attempts_left -= 1;
        }
    }

    /// Stores a subscription of a session, if the session still exists. If a limit is reached, an idle session ends first.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        session: &SessionId,
        uri: String,
    ) -> Result<(), StoreError> {
        let sessions = &self.server.store_ref().sessions;
        let mut attempts_left = MAX_EVICTION_ATTEMPTS;
        loop {
            let change = SessionUpdate::Subscribe(uri.clone());
            let error = match sessions.update(session, change).await {
                Err(error @ (StoreError::Full { .. } | StoreError::TooMany { .. })) => error,
                updated => return updated.map(drop),
            };
            let Some(record) = sessions.load(session).await? else {
                return Ok(());
            };
            let (endpoint, session, uri) = (self.clone(), *session, uri.clone());
            let evicting = async move {
                let (owner, uri) = (&record.owner, &*uri);
                let needed = RequiredSpace::Subscription { owner, uri };
                endpoint.evict_idle_session(needed, Some(&session)).await
            };
            if attempts_left == 0 || !run_to_end(evicting).await? {
                return Err(error);
            }
            attempts_left -= 1;
        }
    }

    /// Ends an idle session other than `exempt`. Returns whether there was one.
    async fn evict_idle_session(
        &self,
        needed: RequiredSpace<'_>,
        exempt: Option<&SessionId>,
    ) -> Result<bool, StoreError> {
        let users = self.server.session_users().all();
        let task_owners = OnceLock::new();
        let in_use = |session: &SessionId| {
            Some(session) == exempt
                || users.iter().any(|user| user.is_using(session))
                || self.has_running_task(session, task_owners.get_or_init(|| self.task_owners()))
        };
        let evicted = self.server.store_ref().sessions.evict(needed, &in_use);
        let Some(evicted) = evicted.await? else {
            return Ok(false);
        };
        self.cleanup_session(evicted).await;
        Ok(true)
    }

    /// Drops the state of a session that is no longer in the store.
    pub(crate) async fn cleanup_session(&self, session: SessionId) {
        self.active_sessions.close(&session);
        for user in self.server.session_users().all() {
            user.close(&session);
        }
        self.end_session_here(session);
        if let Some(instance) = self.server.instance() {
            Box::pin(instance.publish_session_end(session)).await;
        }
        let events = &self.server.store_ref().events;
        if let Err(error) = events.remove_session(&session).await {
            tracing::debug!(%error, "cannot delete the events of an ended session; they will expire");
        }
    }

    /// Ends the tasks of a session that has ended, and notifies the relay and the layers.
    pub(super) fn end_session_here(&self, session: SessionId) {
        self.server.session_ended(SessionKey::from_id(&session));
        tasks::session_ended(&self.server, session);
    }

    fn task_owners(&self) -> HashSet<Arc<str>> {
        self.server.running_tasks().owners()
    }

    /// Returns whether a task is running that would end with the session.
    fn has_running_task(&self, session: &SessionId, owners: &HashSet<Arc<str>>) -> bool {
        !owners.is_empty() && owners.contains(tasks::TaskOwner::for_session(None, *session).key())
    }

    /// Registers this endpoint with the server, so that other endpoints do not evict sessions in use here.
    pub(crate) fn register_with(self: &Arc<Self>, users: &SessionUsers) {
        let user: Arc<dyn SessionUser> = self.clone();
        users.add(Arc::downgrade(&user));
    }
}

impl SessionUser for Endpoint {
    fn is_using(&self, session: &SessionId) -> bool {
        self.active_sessions.is_in_use(session)
    }

    fn close(&self, session: &SessionId) {
        self.active_sessions.close(session);
    }

    fn writes_stream(&self, session: &SessionId, stream: StreamId) -> bool {
        forwarding::find_written(self, *session, stream).is_some()
    }

    fn end_session(&self, session: SessionId) {
        self.end_session_here(session);
    }

    fn cancel_call(&self, session: &SessionId, request: &RequestId) {
        Self::cancel_call(self, session, request);
    }

    fn receive(self: Arc<Self>, message: InstanceMessage) {
        self.receive_from_instance(message);
    }

    fn fail_requests_of_other_slots(&self, slot: InstanceSlot) {
        self.active_sessions.fail_requests_of_other_slots(slot);
    }

    fn check_sessions(self: Arc<Self>) {
        self.check_active_sessions();
    }

    fn general_channel(self: Arc<Self>, session: &SessionId) -> Option<Box<dyn GeneralChannel>> {
        let active = ActiveSessions::activate(&self, *session);
        let has_stream = !active.session.get_streams.is_empty();
        has_stream.then(|| Box::new(active) as _)
    }
}

/// Returns the owner that a request counts against: its principal, or the address that it comes from.
///
/// Loopback, private and unknown addresses may be shared by everyone behind a reverse proxy, so their owners are shared.
pub(crate) fn quota_owner(head: &RequestHead) -> SessionOwner {
    match head.principal() {
        Some(principal) => SessionOwner::principal(&principal),
        None => owner_for_address(head.peer()),
    }
}

/// Returns the owner that all callers from an address share.
pub(crate) fn owner_for_address(peer: Option<SocketAddr>) -> SessionOwner {
    let Some(address) = peer.map(|peer| peer.ip().to_canonical()) else {
        return SessionOwner::shared("unknown address");
    };
    if address.is_loopback() {
        return SessionOwner::shared("loopback");
    }
    let key = match address {
        IpAddr::V4(address) => format!("address {address}"),
        // A caller with one address of a /64 network usually has all of them.
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("network {a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    };
    if is_private(address) {
        SessionOwner::shared(key)
    } else {
        SessionOwner::caller(key)
    }
}

/// Returns whether an address is not public, so that it may belong to a proxy.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            // RFC 6598: shared address space of carriers.
            let is_carrier = a == 100 && (64..128).contains(&b);
            is_carrier
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner_of(address: &str) -> SessionOwner {
        let address: IpAddr = address.parse().unwrap();
        owner_for_address(Some((address, 4711).into()))
    }

    #[test]
    fn an_address_is_one_caller_on_every_port_and_in_every_notation() {
        let other_port = owner_for_address(Some("203.0.113.7:1".parse().unwrap()));

        assert_eq!(owner_of("203.0.113.7"), other_port);
        assert_eq!(owner_of("::ffff:203.0.113.7"), other_port);
        assert_ne!(owner_of("203.0.113.8"), other_port);
        assert!(!other_port.is_shared());
    }

    #[test]
    fn an_ipv6_64_network_is_one_caller() {
        assert_eq!(
            owner_of("2001:db8:1:2::1"),
            owner_of("2001:db8:1:2:ffff::9")
        );
        assert_ne!(owner_of("2001:db8:1:2::1"), owner_of("2001:db8:1:3::1"));
        assert!(!owner_of("2001:db8:1:2::1").is_shared());
    }

    #[test]
    fn addresses_of_possible_proxies_are_shared_owners() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "10.1.2.3",
            "172.17.0.2",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.1.1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(owner_of(address).is_shared(), "{address}");
        }
        assert!(owner_for_address(None).is_shared());
        assert_eq!(owner_of("127.0.0.1"), owner_of("::1"));
        assert_ne!(owner_of("10.1.2.3"), owner_of("10.1.2.4"));
    }
}
