//! What a server tells: progress, log messages, changes.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use turnbuckle_protocol::json;
use turnbuckle_protocol::method::{self, Method};
use turnbuckle_protocol::types::{
    CancelledParams, ElicitationCompleteParams, LoggingMessageParams, ProgressParams,
    ResourceUpdatedParams,
    tasks::{GetTaskResult, legacy},
};

use super::{Hub, Signal};
use crate::callbacks::guard;
use crate::change::Change;
use crate::oddity::Oddity;

impl Hub {
    /// Takes a notification; one that nobody knows is passed over.
    pub(super) fn told(self: &Arc<Self>, name: &str, params: &str) {
        const PROGRESS: &str = method::PROGRESS.name;
        const MESSAGE: &str = method::MESSAGE.name;
        const CANCELLED: &str = method::CANCELLED.name;
        const TOOLS: &str = method::TOOLS_LIST_CHANGED.name;
        const PROMPTS: &str = method::PROMPTS_LIST_CHANGED.name;
        const RESOURCES: &str = method::RESOURCES_LIST_CHANGED.name;
        const UPDATED: &str = method::RESOURCES_UPDATED.name;
        const VISITED: &str = method::ELICITATION_COMPLETE.name;
        const TASK: &str = method::TASKS_CHANGED.name;
        const TASK_STATUS: &str = method::TASKS_STATUS.name;
        const ACKNOWLEDGED: &str = method::SUBSCRIPTIONS_ACKNOWLEDGED.name;
        self.subscriptions.told(name, params);
        match name {
            PROGRESS => self.with(name, params, |params| self.progress(params)),
            MESSAGE => self.with(name, params, |params| self.log(params)),
            CANCELLED => self.with(name, params, |params: CancelledParams| {
                if let Some(id) = params.request_id {
                    self.subscriptions.end(&id);
                    self.asked.abort(&id);
                }
            }),
            TOOLS => self.changed(Change::Tools),
            PROMPTS => self.changed(Change::Prompts),
            RESOURCES => self.changed(Change::Resources),
            UPDATED => self.with(name, params, |params: ResourceUpdatedParams| {
                self.changed(Change::Resource { uri: params.uri });
            }),
            VISITED => self.with(name, params, |params: ElicitationCompleteParams| {
                let elicitation_id = params.elicitation_id;
                self.changed(Change::Visit { elicitation_id });
            }),
            TASK => self.with(name, params, |task| {
                self.changed(Change::Task(Box::new(task)));
            }),
            TASK_STATUS => self.with(name, params, |status: legacy::GetTaskResult| {
                let task = GetTaskResult::new(status.task.into());
                self.changed(Change::Task(Box::new(task)));
            }),
            ACKNOWLEDGED => {}
            _ => tracing::debug!(
                method = name,
                known = Method::named(name).is_some(),
                "passed over"
            ),
        }
    }

    /// Lets everyone know who listens.
    pub(crate) fn changed(&self, change: Change) {
        self.cache().forget(&change);
        if let Change::Tools = change {
            self.void_promises();
        }
        // Nobody listening is fine.
        let _ = self.signals.send(Signal::Change(change));
    }

    /// The tools may have changed, and with them what they promise.
    pub(crate) fn void_promises(&self) {
        if let Some(client) = self.client() {
            client.tools.void_promises();
        }
    }

    fn progress(&self, params: ProgressParams) {
        let token = params.progress_token.clone();
        if !self.watchers.report(params) && !self.given_up.contains(&token) {
            self.odd(Oddity::ForeignProgress(token));
        }
    }

    fn log(&self, params: LoggingMessageParams) {
        if let Some(tell) = &self.listeners.log {
            guard::tell(|| tell(params));
        }
    }

    fn with<T: DeserializeOwned>(&self, name: &str, params: &str, take: impl FnOnce(T)) {
        match json::from_str(params) {
            Ok(params) => take(params),
            Err(error) => self.odd(Oddity::InvalidNotification {
                method: name.to_owned(),
                error: error.to_string(),
            }),
        }
    }
}
