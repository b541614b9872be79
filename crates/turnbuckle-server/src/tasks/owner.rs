//! Ownership of tasks.

use std::sync::Arc;

use turnbuckle_protocol::Principal;
use turnbuckle_store::{SessionId, TaskOutcome, TaskUpdate};

use super::{methods::apply_update, wire_format};
use crate::{
    Server,
    lifecycle::{RequestOrigin, TaskModel},
};

/// The owner of a task: the principal, else its session, else any caller that knows its id.
///
/// The two task models do not share tasks, because their results are encoded differently.
pub(crate) struct TaskOwner {
    key: Arc<str>,
    is_shared: bool,
}

impl TaskOwner {
    /// The owner of tasks that a caller creates.
    pub(crate) fn for_origin(origin: &RequestOrigin) -> Self {
        let session = match origin.rules.tasks {
            TaskModel::ClientRequested => origin.session,
            TaskModel::None | TaskModel::ServerDirected => None,
        };
        let design = match origin.rules.tasks {
            TaskModel::ServerDirected => "offered",
            TaskModel::ClientRequested | TaskModel::None => "asked",
        };
        Self::new(design, origin.principal.as_deref(), session)
    }

    /// The owner of tasks created in a session.
    pub(crate) fn for_session(principal: Option<&Principal>, session: SessionId) -> Self {
        Self::new("asked", principal, Some(session))
    }

    fn new(design: &str, principal: Option<&Principal>, session: Option<SessionId>) -> Self {
        let subject = match (principal, session) {
            (Some(principal), _) => {
                let name = (&principal.issuer, &principal.subject, &principal.client);
                serde_json::to_string(&name).expect("strings can be written")
            }
            (None, Some(session)) => session.to_string(),
            (None, None) => String::new(),
        };
        Self {
            is_shared: subject.is_empty(),
            key: format!("{design} {subject}").into(),
        }
    }

    /// Returns whether callers that cannot be distinguished share it.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// The key in the store.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn into_key(self) -> Arc<str> {
        self.key
    }
}

/// Cancels the tasks of a session that ended.
pub(crate) fn session_ended(server: &Server, session: SessionId) {
    let owner = TaskOwner::new("asked", None, Some(session));
    let remaining = server.running_tasks().owned_by(owner.key());
    if remaining.is_empty() {
        return;
    }
    // Without a runtime the process is shutting down.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let server = server.clone();
    runtime.spawn(async move {
        for id in remaining {
            let change = TaskUpdate::End {
                status: turnbuckle_protocol::types::TaskStatus::Cancelled,
                message: Some("the session has ended".to_owned()),
                outcome: TaskOutcome::Error(wire_format::error(&wire_format::cancelled_error())),
            };
            if let Err(error) = apply_update(&server, &id, change).await {
                tracing::warn!(%error, "cancelling a task of an ended session failed");
            }
        }
    });
}
