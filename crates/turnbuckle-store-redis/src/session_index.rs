//! Counts sessions and their bytes, per owner and in total, and finds those that have expired or can be removed.

use std::{sync::Mutex, time::Duration};

use turnbuckle_store::{SessionId, SessionLimits, SessionOwner, StoreError};

use crate::{
    connection::{Connection, lock},
    index::millis,
    join::join_all,
    keys::{self, Keys},
    script::{Argument, Script},
};

static RESERVE: Script = Script::new(include_str!("scripts/session_reserve.lua"));
static RELEASE: Script = Script::new(include_str!("scripts/session_release.lua"));
static DUE: Script = Script::new(include_str!("scripts/session_due.lua"));
static EXTEND: Script = Script::new(include_str!("scripts/session_extend.lua"));
static TAKE: Script = Script::new(include_str!("scripts/session_take.lua"));

/// The most sessions that one step of a sweep looks at.
const MAX_STEP: usize = 500;

/// The most owners that an eviction looks at.
const MAX_OWNERS: usize = 50;

/// The most sessions of one owner that an eviction looks at.
const MAX_CANDIDATES: usize = 100;

/// A session that another process has used within this time is not evicted.
const RECENT_MILLIS: f64 = 60_000.0;

/// Added to the rank of initialized sessions.
const INITIALIZED_RANK: f64 = 1e15;

/// The index of all sessions, in one hash slot. Deadlines there are those of the last update; the sessions themselves expire.
pub(crate) struct SessionIndex {
    names: Keys,
    keys: [String; 6],
    owner_prefix: String,
    /// The name of a request for expired sessions without a response. It is repeated, so that they are not lost.
    repeated: Mutex<Option<String>>,
}

/// A session as the index knows it.
pub(crate) struct IndexedSession<'a> {
    pub(crate) id: &'a str,
    pub(crate) owner: &'a SessionOwner,
    pub(crate) bytes: usize,
    pub(crate) initialized: bool,
    pub(crate) ttl: Duration,
}

/// A session that could be removed.
struct Candidate {
    id: String,
    bytes: usize,
    initialized: bool,
    /// When it expires, in milliseconds since 1970.
    ends: f64,
    /// Set if it was used since its last update.
    was_used: bool,
}

impl SessionIndex {
    pub(crate) fn new(names: &Keys) -> Self {
        Self {
            keys: names.session_index(),
            owner_prefix: names.sessions_of_owners(),
            names: names.clone(),
            repeated: Mutex::default(),
        }
    }

    /// Adds or changes a session. If a limit is exceeded, expired sessions are removed first.
    pub(crate) async fn reserve(
        &self,
        connection: &Connection,
        session: &IndexedSession<'_>,
        limits: &SessionLimits,
    ) -> Result<(), StoreError> {
        let mut exceeded = self.try_reserve(connection, session, limits).await?;
        if exceeded != 0 {
            self.collect_expired(connection).await?;
            exceeded = self.try_reserve(connection, session, limits).await?;
        }
        let too_many = |what, limit| Err(StoreError::TooMany { what, limit });
        match exceeded {
            0 => Ok(()),
            3 => {
                let limit = limits.max_sessions_for(session.owner);
                too_many("sessions of one caller", limit)
            }
            4 => {
                let limit = limits.max_bytes_for(session.owner);
                too_many("bytes in sessions of one caller", limit)
            }
            _ => Err(StoreError::Full { what: "session" }),
        }
    }

    async fn try_reserve(
        &self,
        connection: &Connection,
        session: &IndexedSession<'_>,
        limits: &SessionLimits,
    ) -> Result<i64, StoreError> {
        let owner = keys::hash(session.owner.key());
        let arguments = [
            session.id.into(),
            (&owner).into(),
            session.bytes.into(),
            millis(session.ttl).into(),
            usize::from(session.initialized).into(),
            (&self.owner_prefix).into(),
            limits.max_sessions.into(),
            limits.max_extra_bytes.into(),
            limits.max_sessions_for(session.owner).into(),
            limits.max_bytes_for(session.owner).into(),
        ];
        let [deadlines, entries, totals, sessions, bytes, _] = self.keys();
        let keys = [deadlines, entries, totals, sessions, bytes];
        connection.script(&RESERVE, &keys, &arguments).await
    }

    /// Removes sessions. The next sweep reports them if they have expired.
    pub(crate) async fn release(
        &self,
        connection: &Connection,
        ids: &[String],
        expired: bool,
    ) -> Result<(), StoreError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut arguments: Vec<Argument<'_>> =
            vec![usize::from(expired).into(), (&self.owner_prefix).into()];
        arguments.extend(ids.iter().map(Argument::from));
        let count: i64 = connection
            .script(&RELEASE, &self.keys(), &arguments)
            .await?;
        tracing::trace!(count, expired, "sessions removed");
        Ok(())
    }

    pub(crate) async fn len(&self, connection: &Connection) -> Result<usize, StoreError> {
        let mut count = redis::cmd("ZCARD");
        count.arg(&self.keys[0]);
        connection.run(&count).await
    }

    /// Removes expired sessions and returns those that no caller has taken.
    pub(crate) async fn take_expired(
        &self,
        connection: &Connection,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.collect_expired(connection).await?;
        let mut expired = Vec::new();
        loop {
            let request = lock(&self.repeated).take();
            let request = request.unwrap_or_else(keys::random_name);
            let result = self.names.expired_sessions(&request);
            let keys = [&*self.keys[5], &*result];
            let arguments = [MAX_STEP.into()];
            let taken: Result<String, _> = connection.script(&TAKE, &keys, &arguments).await;
            let taken = taken.inspect_err(|_| *lock(&self.repeated) = Some(request));
            let taken = match taken {
                Ok(taken) => taken,
                // What was taken before is reported, and the rest by the next call.
                Err(_) if !expired.is_empty() => return Ok(expired),
                Err(error) => return Err(error),
            };
            let ids: Vec<SessionId> = taken
                .split_ascii_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect();
            let is_last = ids.len() < MAX_STEP;
            expired.extend(ids);
            if is_last {
                return Ok(expired);
            }
        }
    }

    /// Removes sessions that have expired, and corrects the deadlines of those that were used.
    async fn collect_expired(&self, connection: &Connection) -> Result<(), StoreError> {
        loop {
            let keys = [&*self.keys[0]];
            let due: Vec<String> = connection.script(&DUE, &keys, &[MAX_STEP.into()]).await?;
            let ttls = join_all(due.iter().map(|id| self.ttl(connection, id))).await;
            let (mut gone, mut used) = (Vec::new(), Vec::new());
            for (id, ttl) in due.iter().zip(ttls) {
                match ttl? {
                    Some(ttl) => used.push((id, ttl)),
                    None => gone.push(id.clone()),
                }
            }
            self.release(connection, &gone, true).await?;
            let extended = used.iter().map(|(id, ttl)| async move {
                let arguments = [(*id).into(), millis(*ttl).into()];
                let extended: Result<i64, _> = connection.script(&EXTEND, &keys, &arguments).await;
                extended
            });
            for extended in join_all(extended).await {
                extended?;
            }
            if due.len() < MAX_STEP {
                return Ok(());
            }
        }
    }

    /// Returns the time to live of a session, or `None` if it does not exist.
    async fn ttl(&self, connection: &Connection, id: &str) -> Result<Option<Duration>, StoreError> {
        let mut command = redis::cmd("PTTL");
        command.arg(self.names.session(id));
        let millis: i64 = connection.run(&command).await?;
        Ok(u64::try_from(millis).ok().map(Duration::from_millis))
    }

    /// Finds the session to remove so that an owner gets room for a session (`is_session`) with these bytes.
    pub(crate) async fn find_evictable(
        &self,
        connection: &Connection,
        owner: &SessionOwner,
        (is_session, bytes): (bool, usize),
        limits: &SessionLimits,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> Result<Option<SessionId>, StoreError> {
        let own = keys::hash(owner.key());
        let [deadlines, _, totals, by_sessions, by_bytes, _] = self.keys();
        let score = async |key: &str| {
            let mut command = redis::cmd("ZSCORE");
            command.arg(key).arg(&own);
            let score: Option<usize> = connection.run(&command).await?;
            Ok::<_, StoreError>(score.unwrap_or(0))
        };
        let (own_sessions, own_bytes) = (score(by_sessions).await?, score(by_bytes).await?);
        let mut count = redis::cmd("ZCARD");
        count.arg(deadlines);
        let sessions: usize = connection.run(&count).await?;
        let mut total = redis::cmd("HGET");
        total.arg(totals).arg("bytes");
        let total: Option<usize> = connection.run(&total).await?;
        let own_after = own_bytes.saturating_add(bytes);
        let missing_own = own_after.saturating_sub(limits.max_bytes_for(owner));
        let missing = (total.unwrap_or(0) + bytes).saturating_sub(limits.max_extra_bytes);
        let find = async |owners: Vec<String>, min_bytes: usize| {
            for owner in owners {
                let found = self.first_idle(connection, &owner, min_bytes, limits, in_use);
                if let Some(found) = found.await? {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        };
        if is_session && own_sessions >= limits.max_sessions_for(owner) {
            find(vec![own], 0).await
        } else if bytes > 0 && missing_own > 0 {
            find(vec![own], missing_own.max(missing)).await
        } else if is_session && sessions >= limits.max_sessions {
            // An owner that loses a session must still have at least as many as the owner that gains one.
            let larger = self.largest(connection, by_sessions, own_sessions + 2);
            let mut owners = larger.await?;
            owners.push(own);
            find(owners, 0).await
        } else if bytes > 0 && missing > 0 {
            let larger = self.largest(connection, by_bytes, own_after + 1);
            let mut owners = larger.await?;
            owners.push(own);
            find(owners, missing).await
        } else {
            Ok(None)
        }
    }

    /// Returns the owners with at least this score, largest first.
    async fn largest(
        &self,
        connection: &Connection,
        key: &str,
        least: usize,
    ) -> Result<Vec<String>, StoreError> {
        let mut command = redis::cmd("ZRANGE");
        command.arg(key).arg("+inf").arg(least);
        command.arg("BYSCORE").arg("REV");
        command.arg("LIMIT").arg(0).arg(MAX_OWNERS);
        connection.run(&command).await
    }

    /// Returns the session of an owner to remove first, of those with at least `min_bytes`.
    async fn first_idle(
        &self,
        connection: &Connection,
        owner: &str,
        min_bytes: usize,
        limits: &SessionLimits,
        in_use: &(dyn Fn(&SessionId) -> bool + Send + Sync),
    ) -> Result<Option<SessionId>, StoreError> {
        let mut ranked = redis::cmd("ZRANGE");
        ranked.arg(format!("{}{owner}", self.owner_prefix));
        ranked.arg(0).arg(MAX_CANDIDATES - 1).arg("WITHSCORES");
        let ranked: Vec<(String, f64)> = connection.run(&ranked).await?;
        let ranked = ranked
            .iter()
            .filter(|(id, _)| id.parse().is_ok_and(|id| !in_use(&id)));
        let candidates = join_all(ranked.map(|(id, rank)| self.candidate(connection, id, *rank)));
        let time = redis::cmd("TIME");
        let (seconds, micros): (f64, f64) = connection.run(&time).await?;
        let now = seconds * 1e3 + micros / 1e3;
        let mut candidates: Vec<_> = candidates
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect();
        candidates.retain(|candidate| {
            let idle = if candidate.initialized {
                limits.idle
            } else {
                limits.idle_before_initialized
            };
            let unused_for = idle.as_secs_f64() * 1e3 - (candidate.ends - now);
            let is_used_elsewhere = candidate.was_used && unused_for < RECENT_MILLIS;
            candidate.bytes >= min_bytes && !is_used_elsewhere
        });
        let first = candidates.into_iter().min_by(|one, other| {
            let class = one.initialized.cmp(&other.initialized);
            class.then(one.ends.total_cmp(&other.ends))
        });
        Ok(first.and_then(|candidate| candidate.id.parse().ok()))
    }

    async fn candidate(
        &self,
        connection: &Connection,
        id: &str,
        rank: f64,
    ) -> Result<Option<Candidate>, StoreError> {
        let mut entry = redis::cmd("HGET");
        entry.arg(&self.keys[1]).arg(id);
        let entry: Option<String> = connection.run(&entry).await?;
        let Some((bytes, _)) = entry.as_deref().and_then(|entry| entry.split_once(' ')) else {
            return Ok(None);
        };
        let mut ends = redis::cmd("PEXPIRETIME");
        ends.arg(self.names.session(id));
        let ends: i64 = connection.run(&ends).await?;
        if ends < 0 {
            return Ok(None);
        }
        let initialized = rank >= INITIALIZED_RANK;
        let deadline = if initialized {
            rank - INITIALIZED_RANK
        } else {
            rank
        };
        // Milliseconds since 1970 are exact in this type.
        let ends = ends as f64;
        Ok(Some(Candidate {
            id: id.to_owned(),
            bytes: bytes.parse().unwrap_or(0),
            initialized,
            ends,
            // The index counts a session a little before it is stored.
            was_used: ends > deadline + 1_000.0,
        }))
    }

    fn keys(&self) -> [&str; 6] {
        self.keys.each_ref().map(String::as_str)
    }
}
