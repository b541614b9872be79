//! The debug log: a trace of the calls that this server answers.
//!
//! A [`Trace`] is a layer of the server. It notes when a call begins and ends, keeps the newest of these notes in memory,
//! and shows each caller its own ones only. Nothing of it is ever written to a disk.

mod entry;
mod glob;
mod log;
mod params;
mod resources;
mod tree;

pub(crate) use entry::{Entry, EntryType};
pub(crate) use glob::Glob;
pub(crate) use log::{Log, Session, Wanted};
pub(crate) use resources::Status;
pub use resources::resources;
pub(crate) use tree::{Node, Shown};

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use turnbuckle_protocol::Principal;
use turnbuckle_server::middleware::{Answer, Ending, Middleware, Next, Operation};

use crate::{ContextError, Owner, Owners};
use entry::Call;
use log::Begun;

/// Callers whose notes are kept; whoever was silent for longest is forgotten first.
const MOST_OWNERS: usize = 32;
/// What the tools and resources of the trace itself are called.
const OWN_NAMES: [&str; 2] = ["debug_", "debuglog:"];

/// Notes the calls of a server. Clones share their notes.
///
/// It is on from the beginning: a few hundred kilobytes per caller at most, and nothing that a call would feel.
#[derive(Clone, Debug)]
pub struct Trace {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    owners: Owners,
    logs: Mutex<Logs>,
}

#[derive(Debug, Default)]
struct Logs {
    /// With the count of uses at which each was used last.
    of: HashMap<Owner, (u64, Log)>,
    uses: u64,
}

impl Trace {
    /// A trace that keeps the calls of different owners apart.
    pub fn new(owners: Owners) -> Self {
        let logs = Mutex::default();
        Self {
            shared: Arc::new(Shared { owners, logs }),
        }
    }

    /// Works with the notes of a caller.
    pub(crate) fn with<T>(
        &self,
        principal: Option<&Principal>,
        work: impl FnOnce(&mut Log) -> T,
    ) -> Result<T, ContextError> {
        let owner = self.shared.owners.of(principal)?;
        let logs = &self.shared.logs;
        let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(work(logs.of(owner)))
    }

    fn enter(&self, operation: &Operation) -> Option<Begun> {
        let call = Call::of(operation);
        let wanted = self.with(operation.principal(), |log| log.wants(&call));
        if !wanted.unwrap_or(false) {
            return None;
        }
        // Looking for secrets takes a moment, in which nobody else should have to wait.
        let params = params::text(operation.arguments());
        let enter = |log: &mut Log| log.enter(call, params);
        self.with(operation.principal(), enter).ok()
    }

    fn exit(&self, operation: &Operation, begun: &Begun, ending: Ending) {
        // Who was allowed to begin is allowed to end.
        let _ = self.with(operation.principal(), |log| log.exit(begun, ending));
    }
}

impl Middleware for Trace {
    fn handle<'a>(
        &'a self,
        operation: Operation,
        next: Next,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(async move {
            match self.enter(&operation) {
                Some(begun) => {
                    next.observe(|ending| self.exit(&operation, &begun, ending))
                        .await
                }
                None => next.run().await,
            }
        })
    }
}

impl Logs {
    fn of(&mut self, owner: Owner) -> &mut Log {
        self.uses += 1;
        if !self.of.contains_key(&owner) && self.of.len() >= MOST_OWNERS {
            let oldest = self.of.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(owner, _)| owner.clone());
            oldest.and_then(|owner| self.of.remove(&owner));
        }
        let new = || (0, Log::new(self.uses));
        let (used, log) = self.of.entry(owner).or_insert_with(new);
        *used = self.uses;
        log
    }
}

#[cfg(test)]
mod tests;
