//! The call log: recent calls of this server, for debugging.
//!
//! [`CallLog`] is a middleware. It records the start and end of each call, keeps the newest entries in memory, and shows each
//! caller only its own calls. It never writes to the disk.

mod entry;
mod log;
mod tree;

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
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
    log::{DebugSession, LogQuery, NamePattern, OwnerLog},
    tree::{CallNode, RenderOptions},
};
use crate::{ContextError, Owner, OwnershipPolicy, storage::lock};

/// Maximum number of callers with a log; the least recently used log is removed first.
const MAX_OWNERS: usize = 32;
/// Name prefixes of the tools and resources of the call log itself.
const OWN_NAMES: [&str; 2] = ["debug_", "debuglog:"];

/// Records the calls of a server. Clones share the entries.
///
/// It is enabled by default: it takes a few hundred kilobytes per caller at most, and no measurable time.
#[derive(Clone, Debug)]
pub(crate) struct CallLog {
    shared: Arc<CallLogInner>,
}

#[derive(Debug)]
struct CallLogInner {
    owners: OwnershipPolicy,
    logs: Mutex<OwnerLogs>,
}

#[derive(Debug, Default)]
struct OwnerLogs {
    /// Each log with the value of `uses` at its last use.
    by_owner: HashMap<Owner, (u64, OwnerLog)>,
    uses: u64,
}

impl CallLog {
    /// Creates a call log with separate entries per owner.
    pub(crate) fn new(owners: OwnershipPolicy) -> Self {
        let logs = Mutex::default();
        Self {
            shared: Arc::new(CallLogInner { owners, logs }),
        }
    }

    /// Calls `work` with the log of a caller.
    pub(crate) fn with_log<T>(
        &self,
        principal: Option<&Principal>,
        work: impl FnOnce(&mut OwnerLog) -> T,
    ) -> Result<T, ContextError> {
        let owner = self.shared.owners.owner_for(principal)?;
        Ok(work(lock(&self.shared.logs).for_owner(owner)))
    }

    fn enter(&self, operation: &Operation) -> Option<OpenCall> {
        let call = CallNames::from_operation(operation);
        let should_record = self.with_log(operation.principal(), |log| log.should_record(&call));
        if !should_record.unwrap_or(false) {
            return None;
        }
        // Redact without holding the lock, because it takes time.
        let params = entry::text(operation.arguments());
        let enter = |log: &mut OwnerLog| log.enter(call, params);
        self.with_log(operation.principal(), enter).ok()
    }

    fn exit(&self, operation: &Operation, open_call: &OpenCall, ending: OperationOutcome) {
        // Fails only for callers without an owner, who could not start the call either.
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

/// Returns the resources `debuglog://tree`, `entries`, `status` and `text`. Each caller reads its own entries.
pub(crate) fn resources(call_log: &CallLog) -> Vec<Resource> {
    let json = "application/json";
    vec![
        resource(call_log, "tree", "Calls as a tree", json, |log| {
            json!(CallNode::forest(log.entries(), &RenderOptions::default())).to_string()
        }),
        resource(
            call_log,
            "entries",
            "The start and end of each call",
            json,
            |log| json!(log.entries().collect::<Vec<&LogEntry>>()).to_string(),
        ),
        resource(
            call_log,
            "status",
            "The state of the call log",
            json,
            |log| json!(CallLogStatus::from_log(log)).to_string(),
        ),
        resource(
            call_log,
            "text",
            "Calls as a tree, as text",
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

/// The state of the log.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct CallLogStatus {
    enabled: bool,
    filter_pattern: String,
    entry_count: usize,
    /// Depth of a call made now.
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
