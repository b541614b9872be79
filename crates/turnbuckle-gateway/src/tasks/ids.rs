//! The ids of upstream tasks, as clients see them.
//!
//! A sealed id names the server and its task, and can be opened only for the caller that got it: its principal, or its
//! session if callers are not authenticated. One task always has one id, because clients compare ids.

use std::sync::Arc;

use turnbuckle_protocol::{RpcError, jsonrpc::RawObject, meta::keys};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    gateway::GatewayState,
    lifecycle::{is_stateless, task_design},
    raw_json::{edit, quote},
    upstream::UpstreamServer,
};

/// The member of `_meta` that names the task of a message.
pub(crate) const RELATED_TASK: &str = keys::RELATED_TASK;

/// A task of an upstream server, and the id that its client knows.
#[derive(Clone, Debug)]
pub(crate) struct RelatedTask {
    pub(crate) upstream: String,
    pub(crate) client: String,
}

impl RelatedTask {
    /// Replaces the id in `_meta` of a message for the client. Another task is not named to the client.
    pub(crate) fn to_client(task: Option<&Self>, message: &str) -> Result<String, RpcError> {
        let Some(related) = related_task(message) else {
            return Ok(message.to_owned());
        };
        let client = task
            .filter(|task| task.upstream == related)
            .map(|task| &*task.client);
        with_related_task(message, client)
    }
}

/// Returns the id of the task that `_meta` of a message names.
pub(crate) fn related_task(message: &str) -> Option<String> {
    if !message.contains("related-task") {
        return None;
    }
    let message = RawObject::parse(message).ok()?;
    let meta = RawObject::parse(message.get("_meta")?).ok()?;
    let related = RawObject::parse(meta.get(RELATED_TASK)?).ok()?;
    related.string("taskId").ok()?.map(String::from)
}

/// Sets the task that `_meta` of a message names, or removes it.
pub(crate) fn with_related_task(message: &str, id: Option<&str>) -> Result<String, RpcError> {
    let object = RawObject::parse(message)?;
    let meta = object.get("_meta").unwrap_or("{}");
    let meta = match id {
        Some(id) => {
            let related = format!(r#"{{"taskId":{}}}"#, quote(id));
            edit(meta, &[], &[(RELATED_TASK, related)])?
        }
        None => edit(meta, &[RELATED_TASK], &[])?,
    };
    edit(message, &[], &[("_meta", meta)])
}

/// Returns the purpose that ids of this caller are sealed for.
fn purpose(request: &RelayedRequest) -> String {
    let revision = request.revision();
    let session = request
        .session()
        .filter(|_| !is_stateless(revision) && request.principal().is_none());
    format!("task\0{:?}\0{session:?}", task_design(revision))
}

/// Returns the id under which a client knows a task of a server.
pub(crate) fn seal(request: &RelayedRequest, server: &UpstreamServer, id: &str) -> String {
    let value = format!("{}\0{id}", server.name());
    request.seal_id(value.as_bytes(), &purpose(request))
}

/// Replaces the id of a task in an object with the one that the client knows.
pub(crate) fn seal_member(
    request: &RelayedRequest,
    server: &UpstreamServer,
    task: &str,
) -> Result<String, RpcError> {
    let missing = || RpcError::internal("the task lacks an id");
    let id = RawObject::parse(task)?
        .string("taskId")?
        .ok_or_else(missing)?;
    let sealed = seal(request, server, &id);
    edit(task, &[], &[("taskId", quote(&sealed))])
}

impl GatewayState {
    /// Returns the server of a task and the id that it uses, or `None` if the id is not one of this caller.
    pub(crate) fn find_task(
        &self,
        request: &RelayedRequest,
        id: &str,
    ) -> Option<(Arc<UpstreamServer>, String)> {
        let value = request.open_id(id, &purpose(request))?;
        let value = String::from_utf8(value).ok()?;
        let (server, id) = value.split_once('\0')?;
        let servers = self.servers();
        let server = servers.iter().find(|known| known.name() == server)?;
        Some((Arc::clone(server), id.to_owned()))
    }
}
