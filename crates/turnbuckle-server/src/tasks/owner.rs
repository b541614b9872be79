//! Whose task it is.

use std::sync::Arc;

use turnbuckle_protocol::Principal;
use turnbuckle_store::{SessionId, TaskChange, TaskOutcome};

use super::{methods::changed, shape};
use crate::{
    Server,
    lifecycle::{Caller, TaskDesign},
};

/// Who may use a task: the principal; without one, the session it began in; without one, whoever knows its id.
///
/// The two designs never see each other's tasks, since their results are written differently.
pub(crate) struct Owner {
    key: Arc<str>,
    is_anyone: bool,
}

impl Owner {
    /// The owner of what a caller begins.
    pub(crate) fn of(caller: &Caller) -> Self {
        let session = match caller.rules.tasks {
            TaskDesign::Asked => caller.session,
            TaskDesign::None | TaskDesign::Offered => None,
        };
        let design = match caller.rules.tasks {
            TaskDesign::Offered => "offered",
            TaskDesign::Asked | TaskDesign::None => "asked",
        };
        Self::new(design, caller.principal.as_deref(), session)
    }

    /// The owner of what begins in a session.
    pub(crate) fn of_session(principal: Option<&Principal>, session: SessionId) -> Self {
        Self::new("asked", principal, Some(session))
    }

    fn new(design: &str, principal: Option<&Principal>, session: Option<SessionId>) -> Self {
        let who = match (principal, session) {
            (Some(who), _) => {
                let name = (&who.issuer, &who.subject, &who.client);
                serde_json::to_string(&name).expect("strings can be written")
            }
            (None, Some(session)) => session.to_string(),
            (None, None) => String::new(),
        };
        Self {
            is_anyone: who.is_empty(),
            key: format!("{design} {who}").into(),
        }
    }

    /// Says whether callers that cannot be told apart share it.
    pub(crate) fn is_anyone(&self) -> bool {
        self.is_anyone
    }

    /// Its name in the store.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn into_key(self) -> Arc<str> {
        self.key
    }
}

/// Ends the tasks that only a session which is over could ask for.
pub(crate) fn session_ended(server: &Server, session: SessionId) {
    let owner = Owner::new("asked", None, Some(session));
    let left = server.running_tasks().of(owner.key());
    if left.is_empty() {
        return;
    }
    // Outside of a runtime everything is being torn down, tasks too.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let server = server.clone();
    runtime.spawn(async move {
        for id in left {
            let change = TaskChange::End {
                status: turnbuckle_protocol::types::TaskStatus::Cancelled,
                message: Some("the session is over".to_owned()),
                outcome: TaskOutcome::Error(shape::error(&shape::was_cancelled())),
            };
            if let Err(error) = changed(&server, &id, change).await {
                tracing::warn!(%error, "a task of a session that is over goes on");
            }
        }
    });
}
