//! The table of requests that we have sent and that wait for an answer.
//!
//! Reads no clock: the time comes in as an argument.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::RequestId;

#[cfg(test)]
mod tests;

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long silence may last; progress starts it anew.
    pub silence: Duration,
    /// How long it may take altogether, whatever progress is made.
    pub total: Duration,
}

impl Default for Patience {
    /// Allows a minute of silence, and ten minutes altogether.
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}

/// The requests that are open on one connection, each with a value of the caller's.
///
/// ```
/// use std::time::{Duration, Instant};
/// use turnbuckle_protocol::pending::{Patience, Pending};
///
/// let (mut pending, now) = (Pending::new(), Instant::now());
/// let id = pending.open("tools/list", Patience::default(), now);
/// assert_eq!(pending.take(&id), Some("tools/list"));
///
/// let id = pending.open("tools/call", Patience::default(), now);
/// let expired = pending.expire(now + Duration::from_secs(61));
/// assert_eq!(expired, [(id, "tools/call")]);
/// ```
#[derive(Debug)]
pub struct Pending<T> {
    last_id: i64,
    open: HashMap<i64, Open<T>>,
    /// When each open request expires, soonest first; those that never do are not in it.
    deadlines: BTreeSet<(Instant, i64)>,
}

#[derive(Debug)]
struct Open<T> {
    value: T,
    silence: Duration,
    /// `None` when it lies beyond what the clock can say.
    latest: Option<Instant>,
    deadline: Option<Instant>,
}

impl<T> Pending<T> {
    /// Starts with nothing open.
    pub fn new() -> Self {
        Self {
            last_id: 0,
            open: HashMap::new(),
            deadlines: BTreeSet::new(),
        }
    }

    /// Notes a request that is about to be sent, and returns the id to send it with.
    ///
    /// An id is never given twice. It serves as the progress token too.
    pub fn open(&mut self, value: T, patience: Patience, now: Instant) -> RequestId {
        self.last_id += 1;
        let latest = now.checked_add(patience.total);
        let deadline = earliest(now.checked_add(patience.silence), latest);
        let open = Open {
            value,
            silence: patience.silence,
            latest,
            deadline,
        };
        self.open.insert(self.last_id, open);
        self.deadlines.extend(deadline.map(|at| (at, self.last_id)));
        RequestId::from(self.last_id)
    }

    /// Takes the request that an answer names; `None` if there is none, or no longer.
    pub fn take(&mut self, id: &RequestId) -> Option<T> {
        let id = id.as_i64()?;
        let open = self.open.remove(&id)?;
        if let Some(deadline) = open.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(open.value)
    }

    /// Looks at the request of this id.
    pub fn get_mut(&mut self, id: &RequestId) -> Option<&mut T> {
        let open = self.open.get_mut(&id.as_i64()?)?;
        Some(&mut open.value)
    }

    /// Notes progress: silence begins anew, the total does not.
    pub fn progress(&mut self, token: &RequestId, now: Instant) -> Option<&mut T> {
        let id = token.as_i64()?;
        let open = self.open.get_mut(&id)?;
        let deadline = earliest(now.checked_add(open.silence), open.latest);
        if deadline != open.deadline {
            if let Some(previous) = open.deadline {
                self.deadlines.remove(&(previous, id));
            }
            self.deadlines.extend(deadline.map(|at| (at, id)));
            open.deadline = deadline;
        }
        Some(&mut open.value)
    }

    /// Takes every request whose time is up, soonest first; each is to be cancelled.
    pub fn expire(&mut self, now: Instant) -> Vec<(RequestId, T)> {
        let mut expired = Vec::new();
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            self.deadlines.pop_first();
            let open = self.open.remove(&id);
            expired.extend(open.map(|open| (RequestId::from(id), open.value)));
        }
        expired
    }

    /// Returns when [`expire`](Self::expire) will next have something to do.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes every request, oldest first, as when the connection is lost.
    pub fn drain(&mut self) -> Vec<(RequestId, T)> {
        self.deadlines.clear();
        let mut all: Vec<_> = self.open.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter()
            .map(|(id, open)| (RequestId::from(id), open.value))
            .collect()
    }

    /// Counts the open requests.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Says whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Picks the earlier time, where `None` means never.
fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
