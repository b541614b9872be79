//! Room for another session.

use std::{
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use turnbuckle_store::{SessionChange, SessionId, SessionRecord, SessionRoom, StoreError};

use super::endpoint::Endpoint;
use crate::{
    middleware::SessionKey,
    session_users::{SessionUser, SessionUsers},
    tasks,
};

/// How often another caller may be faster than this one in taking the place that was made.
const TRIES: usize = 4;

impl Endpoint {
    /// Creates a session; if there is no room for it, an idle one ends first.
    pub(super) async fn create_session(
        &self,
        record: SessionRecord,
    ) -> Result<SessionId, StoreError> {
        let sessions = &self.server.store_ref().sessions;
        let mut tries = TRIES;
        loop {
            let error = match sessions.create(record.clone()).await {
                Err(error @ (StoreError::Full { .. } | StoreError::TooMany { .. })) => error,
                created => return created,
            };
            let needed = SessionRoom::Session(&record);
            if tries == 0 || !self.make_room(needed, None).await? {
                return Err(error);
            }
            tries -= 1;
        }
    }

    /// Notes a subscription of a session, if that still is; if there is no room for it, an idle session ends first.
    pub(super) async fn subscribe(
        &self,
        session: &SessionId,
        uri: String,
    ) -> Result<(), StoreError> {
        let sessions = &self.server.store_ref().sessions;
        let mut tries = TRIES;
        loop {
            let change = SessionChange::Subscribe(uri.clone());
            let error = match sessions.update(session, change).await {
                Err(error @ (StoreError::Full { .. } | StoreError::TooMany { .. })) => error,
                updated => return updated.map(drop),
            };
            let Some(record) = sessions.load(session).await? else {
                return Ok(());
            };
            let (owner, uri) = (&record.owner, &*uri);
            let needed = SessionRoom::Subscription { owner, uri };
            if tries == 0 || !self.make_room(needed, Some(session)).await? {
                return Err(error);
            }
            tries -= 1;
        }
    }

    /// Ends an idle session other than `asking`; says whether there was one.
    async fn make_room(
        &self,
        needed: SessionRoom<'_>,
        asking: Option<&SessionId>,
    ) -> Result<bool, StoreError> {
        let users = self.server.session_users().all();
        let busy = OnceLock::new();
        let in_use = |session: &SessionId| {
            Some(session) == asking
                || users.iter().any(|user| user.is_using(session))
                || self.has_tasks(session, busy.get_or_init(|| self.task_owners()))
        };
        let ended = self.server.store_ref().sessions.evict(needed, &in_use);
        let Some(ended) = ended.await? else {
            return Ok(false);
        };
        self.session_over(ended).await;
        Ok(true)
    }

    /// Drops all that belongs to a session that is no longer in the store.
    pub(super) async fn session_over(&self, session: SessionId) {
        self.presences.close(&session);
        for user in self.server.session_users().all() {
            user.close(&session);
        }
        self.server.session_ended(SessionKey::of(&session));
        tasks::session_ended(&self.server, session);
        let _ = self.server.store_ref().events.forget(&session).await;
    }

    fn task_owners(&self) -> HashSet<Arc<str>> {
        self.server.running_tasks().owners()
    }

    /// Returns whether a task runs that would end with the session.
    fn has_tasks(&self, session: &SessionId, owners: &HashSet<Arc<str>>) -> bool {
        !owners.is_empty() && owners.contains(tasks::Owner::of_session(None, *session).key())
    }

    /// Lets other listeners of the same server know which sessions are in use here.
    pub(super) fn join(self: &Arc<Self>, users: &SessionUsers) {
        let user: Arc<dyn SessionUser> = self.clone();
        users.add(Arc::downgrade(&user));
    }
}

impl SessionUser for Endpoint {
    fn is_using(&self, session: &SessionId) -> bool {
        self.presences.is_in_use(session)
    }

    fn close(&self, session: &SessionId) {
        self.presences.close(session);
    }
}
