//! `tasks/list`: the tasks of the gateway, then those of each server, one upstream page after the other.

use std::{sync::Arc, time::Duration};

use serde_json::{json, value::RawValue};
use turnbuckle_protocol::{RpcError, json as parser, jsonrpc::RawObject};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    gateway::GatewayState,
    lifecycle::TaskDesign,
    raw_json::ObjectWriter,
    tasks::{ids, server_design},
    upstream::{Sharing, UpstreamServer},
};

/// What the cursors are sealed for.
const PURPOSE: &str = "tasks/list";
/// Lifetime of a cursor.
const CURSOR_LIFETIME: Duration = Duration::from_secs(3600);

/// The position of a page: the gateway itself is the first source, and the servers follow, by name.
struct ListPosition {
    server: Option<String>,
    cursor: Option<String>,
}

/// A page of one source.
struct TaskPage {
    tasks: Vec<String>,
    next: Option<String>,
}

impl GatewayState {
    /// Returns a page of the caller's tasks.
    pub(crate) async fn list_tasks(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let mut position = match params.string("cursor")? {
            Some(cursor) => ListPosition::open(request, &cursor)?,
            None => ListPosition {
                server: None,
                cursor: None,
            },
        };
        loop {
            let server = position.server.take();
            let cursor = position.cursor.take();
            let page = self.task_page(request, server.as_deref(), cursor).await?;
            let next = match page.next {
                Some(cursor) => Some(ListPosition {
                    server,
                    cursor: Some(cursor),
                }),
                None => self
                    .server_after(server.as_deref())
                    .map(|next| ListPosition {
                        server: Some(next),
                        cursor: None,
                    }),
            };
            match next {
                // A page without tasks is not worth a request of the client.
                Some(next) if page.tasks.is_empty() && next.cursor.is_none() => position = next,
                next => {
                    let mut result = ObjectWriter::new();
                    result.member("tasks", &format!("[{}]", page.tasks.join(",")));
                    if let Some(next) = next {
                        result.string("nextCursor", &next.seal(request));
                    }
                    return Ok(result.finish());
                }
            }
        }
    }

    /// Returns the name of the server that follows in a list.
    fn server_after(&self, server: Option<&str>) -> Option<String> {
        let servers = self.servers();
        let mut names = servers.iter().map(|server| server.name());
        if let Some(server) = server {
            names.find(|name| *name == server)?;
        }
        names.next().map(str::to_owned)
    }

    async fn task_page(
        self: &Arc<Self>,
        request: &RelayedRequest,
        server: Option<&str>,
        cursor: Option<String>,
    ) -> Result<TaskPage, RpcError> {
        let mut params = ObjectWriter::new();
        if let Some(cursor) = &cursor {
            params.string("cursor", cursor);
        }
        let request = request.with_params(&params.finish())?;
        let Some(name) = server else {
            return TaskPage::parse(
                &request.handle_own_task().await?,
                |task| Ok(task.to_owned()),
            );
        };
        let servers = self.servers();
        let server = servers.iter().find(|server| server.name() == name);
        let Some(server) = server.filter(|server| lists_tasks(server, &request)) else {
            return Ok(TaskPage::empty());
        };
        match self.relay_call(server, &request, None).await {
            Ok(page) => {
                let seal = |task: &str| ids::seal_member(&request, server, task);
                TaskPage::parse(&page, seal)
            }
            Err(error) if servers.only().is_some() => Err(error),
            Err(error) => {
                tracing::debug!(server = server.name(), error = %error.message, "tasks are left out");
                Ok(TaskPage::empty())
            }
        }
    }
}

/// Returns whether a server lists the tasks of this caller only.
fn lists_tasks(server: &UpstreamServer, request: &RelayedRequest) -> bool {
    let info = server.info.load();
    let Some(info) = info.as_ref() else {
        return false;
    };
    let tasks = info.capabilities.tasks.as_ref();
    let is_shared = match server.settings.sharing {
        Sharing::All => true,
        Sharing::Principal => request.principal().is_none(),
        _ => request.principal().is_none() && request.session().is_none(),
    };
    server_design(info) == Some(TaskDesign::ClientRequested)
        && tasks.is_some_and(|tasks| tasks.list.is_some())
        && !is_shared
}

impl TaskPage {
    fn empty() -> Self {
        Self {
            tasks: Vec::new(),
            next: None,
        }
    }

    /// Reads a page, and converts its tasks. Invalid ones are left out.
    fn parse(
        page: &str,
        convert: impl Fn(&str) -> Result<String, RpcError>,
    ) -> Result<Self, RpcError> {
        let page = RawObject::parse(page)?;
        let tasks = page.get("tasks").unwrap_or("[]");
        let tasks: Vec<&RawValue> = parser::from_str(tasks).map_err(RpcError::from)?;
        let tasks = tasks
            .into_iter()
            .filter_map(|task| convert(task.get()).ok());
        Ok(Self {
            tasks: tasks.collect(),
            next: page.string("nextCursor")?.map(String::from),
        })
    }
}

impl ListPosition {
    fn seal(&self, request: &RelayedRequest) -> String {
        let value = json!([self.server, self.cursor]).to_string();
        request.seal(value.as_bytes(), PURPOSE, CURSOR_LIFETIME)
    }

    fn open(request: &RelayedRequest, cursor: &str) -> Result<Self, RpcError> {
        let invalid = || RpcError::invalid_params("invalid `cursor` for `tasks/list`");
        let value = request.open(cursor, PURPOSE).ok_or_else(invalid)?;
        let (server, cursor) = serde_json::from_slice(&value).map_err(|_| invalid())?;
        Ok(Self { server, cursor })
    }
}
