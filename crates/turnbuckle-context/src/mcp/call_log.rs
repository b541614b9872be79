//! The debug log: a trace of the calls that this server answers.
//!
//! A [`CallLog`] is a layer of the server. It notes when a call begins and ends, keeps the newest of these notes in memory,
//! and shows each caller its own ones only. Nothing of it is ever written to a disk.

mod entry;
mod log;
mod name_pattern;
mod tree;

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::json;
use turnbuckle_protocol::Principal;
use turnbuckle_server::{
    Context, RequestError, Resource,
    middleware::{Middleware, Next, Operation, OperationOutcome, OperationResponse},
};

use self::{entry::CallNames, log::OpenCall};
pub(crate) use self::{
    entry::{LogEntry, LogEntryType},
    log::{DebugSession, LogQuery, OwnerLog},
    name_pattern::NamePattern,
    tree::{CallNode, RenderOptions},
};
use crate::{ContextError, Owner, OwnershipPolicy};

/// Callers whose notes are kept; whoever was silent for longest is forgotten first.
const MAX_OWNERS: usize = 32;
/// What the tools and resources of the trace itself are called.
const OWN_NAMES: [&str; 2] = ["debug_", "debuglog:"];

/// Notes the calls of a server. Clones share their notes.
///
/// It is on from the beginning: a few hundred kilobytes per caller at most, and nothing that a call would feel.
#[derive(Clone, Debug)]
pub struct CallLog {
    shared: Arc<CallLogInner>,
}

#[derive(Debug)]
struct CallLogInner {
    owners: OwnershipPolicy,
    logs: Mutex<OwnerLogs>,
}

#[derive(Debug, Default)]
struct OwnerLogs {
    /// With the count of uses at which each was used last.
    by_owner: HashMap<Owner, (u64, OwnerLog)>,
    uses: u64,
}

impl CallLog {
    /// A trace that keeps the calls of different owners apart.
    pub fn new(owners: OwnershipPolicy) -> Self {
        let logs = Mutex::default();
        Self {
            shared: Arc::new(CallLogInner { owners, logs }),
        }
    }

    /// Works with the notes of a caller.
    pub(crate) fn with_log<T>(
        &self,
        principal: Option<&Principal>,
        work: impl FnOnce(&mut OwnerLog) -> T,
    ) -> Result<T, ContextError> {
        let owner = self.shared.owners.owner_for(principal)?;
        let logs = &self.shared.logs;
        let mut logs = logs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(work(logs.for_owner(owner)))
    }

    fn enter(&self, operation: &Operation) -> Option<OpenCall> {
        let call = CallNames::from_operation(operation);
        let should_record = self.with_log(operation.principal(), |log| log.should_record(&call));
        if !should_record.unwrap_or(false) {
            return None;
        }
        // Looking for secrets takes a moment, in which nobody else should have to wait.
        let params = entry::text(operation.arguments());
        let enter = |log: &mut OwnerLog| log.enter(call, params);
        self.with_log(operation.principal(), enter).ok()
    }

    fn exit(&self, operation: &Operation, open_call: &OpenCall, ending: OperationOutcome) {
        // Who was allowed to begin is allowed to end.
        let _ = self.with_log(operation.principal(), |log| log.exit(open_call, ending));
    }
}

impl Middleware for CallLog {
    fn handle<'a>(
        &'a self,
        operation: Operation,
        next: Next,
    ) -> Pin<Box<dyn Future<Output = OperationResponse> + Send + 'a>> {
        Box::pin(async move {
            match self.enter(&operation) {
                Some(open_call) => {
                    next.observe(|ending| self.exit(&operation, &open_call, ending))
                        .await
                }
                None => next.run().await,
            }
        })
    }
}

impl OwnerLogs {
    fn for_owner(&mut self, owner: Owner) -> &mut OwnerLog {
        self.uses += 1;
        if !self.by_owner.contains_key(&owner) && self.by_owner.len() >= MAX_OWNERS {
            let oldest = self.by_owner.iter().min_by_key(|(_, (used, _))| *used);
            let oldest = oldest.map(|(owner, _)| owner.clone());
            oldest.and_then(|owner| self.by_owner.remove(&owner));
        }
        let new = || (0, OwnerLog::new(self.uses));
        let (used, log) = self.by_owner.entry(owner).or_insert_with(new);
        *used = self.uses;
        log
    }
}

/// The resources `debuglog://tree`, `entries`, `status` and `text`. Each caller reads its own notes.
pub fn resources(call_log: &CallLog) -> Vec<Resource> {
    let json = "application/json";
    vec![
        resource(call_log, "tree", "Calls as a tree", json, |log| {
            json!(CallNode::forest(log.entries(), &RenderOptions::default())).to_string()
        }),
        resource(
            call_log,
            "entries",
            "Every beginning and end of a call",
            json,
            |log| json!(log.entries().collect::<Vec<&LogEntry>>()).to_string(),
        ),
        resource(call_log, "status", "Whether calls are noted", json, |log| {
            json!(CallLogStatus::from_log(log)).to_string()
        }),
        resource(
            call_log,
            "text",
            "Calls as a tree for people",
            "text/plain",
            |log| CallNode::render(&CallNode::forest(log.entries(), &RenderOptions::default())),
        ),
    ]
}

fn resource(
    call_log: &CallLog,
    name: &str,
    description: &str,
    mime_type: &str,
    text: fn(&OwnerLog) -> String,
) -> Resource {
    let call_log = call_log.clone();
    let read = move |cx: Context| {
        let text = call_log.with_log(cx.principal(), |log| text(log));
        std::future::ready(text.map_err(|error| RequestError::invalid(error.to_string())))
    };
    Resource::new(
        format!("debuglog://{name}"),
        format!("debug log: {name}"),
        read,
    )
    .description(description)
    .mime_type(mime_type)
}

/// What the log is doing.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CallLogStatus {
    enabled: bool,
    filter_pattern: String,
    entry_count: usize,
    /// How deep a call made now would stand.
    current_depth: u32,
}

impl CallLogStatus {
    pub(crate) fn from_log(log: &OwnerLog) -> Self {
        Self {
            enabled: log.is_enabled(),
            filter_pattern: log.pattern().to_string(),
            entry_count: log.len(),
            current_depth: log.depth(),
        }
    }
}

#[cfg(test)]
mod tests;
