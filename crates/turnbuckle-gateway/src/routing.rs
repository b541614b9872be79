//! Routes a request to the upstream server that its method, name or URI selects.

use std::sync::Arc;

use serde_json::json;
use tracing::{Instrument, Span, field::Empty};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{RawObject, Truncated, code},
};
use turnbuckle_server::relay::{RelayedRequest, RelayedResult};

use crate::{
    calls::{TargetName, running::tool_error},
    catalog::{
        resources::ResourceNotFound,
        server_states::{RESOURCE_URI, down_message},
        uris::own_uri,
    },
    convert::ListKind,
    gateway::GatewayState,
    lifecycle::is_stateless,
    lock,
    observation::observe,
    policy::AccessError,
    raw_json::{edit, quote},
    upstream::UpstreamServer,
};

/// The server of a tool, prompt or resource.
pub(crate) struct ResolvedName {
    pub(crate) server: Arc<UpstreamServer>,
    /// The name or URI that the server uses.
    pub(crate) original: String,
}

impl GatewayState {
    /// Relays one request.
    pub(crate) async fn handle(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<RelayedResult, RpcError> {
        self.watch_connection(request);
        match ListKind::from_method(request.method()) {
            Some(ListKind::Tools) if self.catalog.settings.search_mode => {
                self.list_search_tools(request)
            }
            // Boxed, so that the future of a call stays small.
            Some(kind @ (ListKind::Tools | ListKind::Prompts)) => {
                Box::pin(self.list(kind, request)).await
            }
            Some(kind) => Box::pin(self.list_resources(kind, request)).await,
            None => self.relay(request).await.map(RelayedResult::from),
        }
    }

    async fn relay(self: &Arc<Self>, request: &RelayedRequest) -> Result<String, RpcError> {
        match request.method() {
            "tools/call" if self.catalog.settings.search_mode => {
                Box::pin(self.call_search_tool(request)).await
            }
            "tools/call" => self.relay_named(ListKind::Tools, "name", request).await,
            "prompts/get" => self.relay_named(ListKind::Prompts, "name", request).await,
            "resources/read" if self.is_states_resource(request) => {
                self.own_result(&self.read_states(), request)
            }
            "resources/read" => self.relay_named(ListKind::Resources, "uri", request).await,
            "resources/subscribe" | "resources/unsubscribe" => {
                Box::pin(self.subscribe(request)).await
            }
            "completion/complete" => Box::pin(self.complete(request)).await,
            "logging/setLevel" => Box::pin(self.set_log_level(request)).await,
            method if method.starts_with("tasks/") => Box::pin(self.handle_task(request)).await,
            method if self.is_skill_method(method) => Box::pin(self.handle_skills(request)).await,
            method => match self.only_server() {
                Some(server) => {
                    self.limit_rate(&server, request)?;
                    Box::pin(self.relay_call(&server, request, None)).await
                }
                None => Err(RpcError::method_not_found(method)),
            },
        }
    }

    /// Returns whether a request is for the resource with the states of the servers.
    pub(crate) fn is_states_resource(&self, request: &RelayedRequest) -> bool {
        let is_states = || {
            let params = request.parsed_params();
            Some(params.string("uri").ok()?? == RESOURCE_URI)
        };
        self.servers().len() > 1 && is_states() == Some(true)
    }

    /// Closes the upstream connections of a client when its connection closes. Sessions end by themselves.
    pub(crate) fn watch_connection(self: &Arc<Self>, request: &RelayedRequest) {
        let Some(session) = request.session().filter(|_| request.has_connection()) else {
            return;
        };
        if !lock(&self.watched).insert(session) {
            return;
        }
        let (state, request) = (Arc::downgrade(self), request.clone());
        tokio::spawn(async move {
            request.connection_closed().await;
            if let Some(state) = state.upgrade() {
                lock(&state.watched).remove(&session);
                state.pool.session_ended(session);
            }
        });
    }

    /// Relays a request that names a tool, prompt or resource.
    pub(crate) async fn relay_named(
        self: &Arc<Self>,
        kind: ListKind,
        member: &'static str,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let missing = || RpcError::invalid_params(format!("`{member}` is missing"));
        let name = params.string(member)?.ok_or_else(missing)?;
        let ResolvedName { server, original } = self.resolve(kind, &name, request).await?;
        let target = TargetName {
            member,
            value: quote(&original),
            original,
        };
        let server = &server;
        let is_call = kind == ListKind::Tools && self.servers().len() > 1;
        if is_call && server.retry_later().is_some() {
            return self.own_result(&tool_error(&down_message(server)), request);
        }
        let relayed = self.relay_call(server, request, Some(&target));
        match relayed.instrument(call_span(server, &target)).await {
            // A model can read this, and may use another tool.
            Err(error) if is_call && is_down(server, &error) => {
                let text = if server.is_up() {
                    // It has other connections.
                    error.message
                } else {
                    down_message(server)
                };
                self.own_result(&tool_error(&text), request)
            }
            outcome => outcome,
        }
    }

    /// Finds the server of a name or URI, and applies the policy to the name that the server uses.
    pub(crate) async fn resolve(
        self: &Arc<Self>,
        kind: ListKind,
        name: &str,
        request: &RelayedRequest,
    ) -> Result<ResolvedName, RpcError> {
        let not_found = |not_found: ResourceNotFound| self.no_server(name, &not_found, request);
        let (server, original) = match kind {
            ListKind::Tools | ListKind::Prompts => {
                let found = match self.find(kind, name) {
                    Some(found) => Some(found),
                    None => {
                        // The lists may have changed, or were never requested.
                        Box::pin(self.collect(kind, request)).await;
                        self.find(kind, name)
                    }
                };
                found.ok_or_else(|| {
                    observe(request, |record| record.set_target(name));
                    self.unknown(kind, name, request)
                })?
            }
            ListKind::Resources => Box::pin(self.find_resource(name, request))
                .await
                .map_err(not_found)?,
            ListKind::Templates => {
                let found = Box::pin(self.find_template(name, request)).await;
                found.ok_or_else(|| self.unknown(kind, name, request))?
            }
        };
        match self.authorize(&server, kind, &original, request).await {
            Ok(()) => Ok(ResolvedName { server, original }),
            Err(AccessError::Denied) => Err(self.unknown(kind, name, request)),
            Err(AccessError::Error(error)) => Err(error),
        }
    }

    /// Finds the server of a tool or prompt.
    fn find(&self, kind: ListKind, name: &str) -> Option<(Arc<UpstreamServer>, String)> {
        if let Some(server) = self.only_server().filter(|_| !self.servers().has_prefix) {
            return Some((server, name.to_owned()));
        }
        let found = lock(self.catalog.names(kind)).get(name).cloned()?;
        let server = self.server_named(&found.server)?;
        Some((server, found.original.to_string()))
    }

    /// Returns the error for a name that no server has.
    fn unknown(&self, kind: ListKind, name: &str, request: &RelayedRequest) -> RpcError {
        let servers = self.servers();
        let down = servers
            .iter()
            .filter(|server| !server.is_up() && !server.needs_login());
        let down: Vec<_> = down.map(|server| server.name()).collect();
        let item = match kind {
            ListKind::Tools => "tool",
            ListKind::Prompts => "prompt",
            ListKind::Resources | ListKind::Templates => "resource",
        };
        let mut message = format!("unknown {item} `{name}`");
        if !down.is_empty() {
            message.push_str(&format!("; these servers are down: {}", down.join(", ")));
        }
        for server in servers.iter().filter(|server| server.needs_login()) {
            message.push_str(&format!("; {}", server.login_error().message));
        }
        let code = match kind {
            ListKind::Resources if !is_stateless(request.revision()) => code::RESOURCE_NOT_FOUND,
            _ => code::INVALID_PARAMS,
        };
        RpcError::new(code, message)
    }

    /// Returns the error for a URI that several servers could have, with the URIs that name one of them.
    fn no_server(
        &self,
        uri: &str,
        not_found: &ResourceNotFound,
        request: &RelayedRequest,
    ) -> RpcError {
        let candidates = not_found.candidates.iter();
        let permitted = candidates.filter(|server| server.policy.permits(ListKind::Resources, uri));
        let uris: Vec<_> = permitted
            .map(|server| own_uri(server.name(), uri))
            .collect();
        if uris.is_empty() {
            return self.unknown(ListKind::Resources, uri, request);
        }
        let message = format!("no server lists `{uri}`; it could be {}", uris.join(" or "));
        RpcError::invalid_params(message).with_data(json!({ "candidates": uris }))
    }

    /// Completes an argument of a prompt or a variable of a template.
    pub(crate) async fn complete(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = request.parsed_params();
        let missing = || RpcError::invalid_params("`ref` is missing");
        let reference = params.get("ref").ok_or_else(missing)?;
        let object = RawObject::parse(reference)?;
        let (kind, member) = match object.string("type")?.as_deref() {
            Some("ref/prompt") => (ListKind::Prompts, "name"),
            Some("ref/resource") => (ListKind::Templates, "uri"),
            _ => {
                return Err(RpcError::invalid_params(
                    "`ref.type` must be ref/prompt or ref/resource",
                ));
            }
        };
        let missing = || RpcError::invalid_params(format!("`ref.{member}` is missing"));
        let name = object.string(member)?.ok_or_else(missing)?;
        let resolved = self.resolve(kind, &name, request).await?;
        let target = TargetName {
            member: "ref",
            value: edit(reference, &[], &[(member, quote(&resolved.original))])?,
            original: resolved.original.clone(),
        };
        self.relay_call(&resolved.server, request, Some(&target))
            .await
    }
}

/// Returns whether a request was not sent because its server cannot be reached.
fn is_down(server: &UpstreamServer, error: &RpcError) -> bool {
    let data = error.data.as_ref();
    // An upstream gateway names its own servers.
    data.is_some_and(|data| data["kind"] == "down" && data["server"] == server.name())
}

/// Opens the span of a relayed call. The span of the request is its parent.
fn call_span(server: &UpstreamServer, target: &TargetName) -> Span {
    let target = Truncated(&target.original);
    tracing::info_span!(
        "relay",
        server = server.name(),
        tool = %target,
        sent.traceparent = Empty,
    )
}
