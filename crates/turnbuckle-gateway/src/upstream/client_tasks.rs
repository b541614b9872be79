//! Tasks of 2025-11-25 on a connection: those that the server requests of the client of a session, and those that the
//! server runs for clients.

use serde_json::value::RawValue;
use turnbuckle_protocol::{RpcError, json as parser, jsonrpc::RawObject, types::TasksCapability};
use turnbuckle_server::relay::GeneralStream;

use super::task_table::TaskTable;
use crate::{
    raw_json::{edit, quote},
    tasks::{self, ids::RelatedTask},
    upstream::{connection::ConnectionState, session_client::SessionClient},
};

/// The tasks of a connection.
#[derive(Default)]
pub(super) struct ConnectionTasks {
    /// Tasks of the client.
    of_client: TaskTable<()>,
    /// Tasks of the server.
    of_server: TaskTable<ServerTask>,
}

/// A task of the server.
#[derive(Clone)]
struct ServerTask {
    /// The id that the client knows.
    client_id: String,
    /// The way to the session that has requested the task.
    owner: Option<GeneralStream>,
}

impl ConnectionTasks {
    /// The server has created a task for a client.
    pub(super) fn created(&self, id: String, client_id: String, owner: Option<GeneralStream>) {
        self.of_server.insert(id, ServerTask { client_id, owner });
    }

    /// Returns the id under which the client knows a task of the server.
    pub(super) fn related(&self, id: &str) -> Option<RelatedTask> {
        let task = self.of_server.get(id)?;
        Some(RelatedTask {
            upstream: id.to_owned(),
            client: task.client_id,
        })
    }

    /// Passes the status of a task of the server on to the session that has requested it.
    pub(super) fn pass_status(&self, params: &str) {
        let task = task_id(params).and_then(|id| self.of_server.get(&id));
        let Some(ServerTask {
            client_id,
            owner: Some(owner),
        }) = task
        else {
            return;
        };
        if let Ok(params) = edit(params, &["_meta"], &[("taskId", quote(&client_id))]) {
            owner.notify("notifications/tasks/status", &params);
        }
    }

    /// Returns whether a notification is about a task of the client.
    pub(super) fn is_of_client(&self, params: &str) -> bool {
        task_id(params).is_some_and(|id| self.of_client.contains(&id))
    }

    /// Records the task that the response to a client request creates.
    pub(super) fn note_response(&self, response: &str) {
        let task = RawObject::parse(response).ok();
        let task = task.and_then(|response| response.get("task").map(str::to_owned));
        if let Some(id) = task.and_then(|task| task_id(&task)) {
            self.of_client.insert(id, ());
        }
    }

    /// Leaves those tasks in a list that the client runs for this server.
    pub(super) fn filter_list(&self, response: &str) -> Result<String, RpcError> {
        let object = RawObject::parse(response)?;
        let tasks = object.get("tasks").unwrap_or("[]");
        let tasks: Vec<&RawValue> = parser::from_str(tasks).map_err(RpcError::from)?;
        let own = tasks.iter().map(|task| task.get());
        let own: Vec<_> = own.filter(|task| self.is_of_client(task)).collect();
        edit(response, &[], &[("tasks", format!("[{}]", own.join(",")))])
    }
}

impl ConnectionState {
    /// Returns the client of a request about one of its tasks.
    pub(super) fn client_of_task(
        &self,
        method: &str,
        params: &str,
    ) -> Result<&SessionClient, RpcError> {
        let has_method = |tasks: &TasksCapability| match method {
            "tasks/list" => tasks.list.is_some(),
            "tasks/cancel" => tasks.cancel.is_some(),
            _ => true,
        };
        let client = self.session_client();
        let client = client.filter(|client| client.tasks().is_some_and(has_method));
        let client = client.ok_or_else(|| RpcError::method_not_found(method))?;
        // Another server behind the gateway may have requested the task.
        if method != "tasks/list" && !self.tasks.is_of_client(params) {
            return Err(tasks::unknown_task());
        }
        Ok(client)
    }
}

fn task_id(task: &str) -> Option<String> {
    let task = RawObject::parse(task).ok()?;
    task.string("taskId").ok()?.map(String::from)
}
