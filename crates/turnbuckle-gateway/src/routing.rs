//! Routes a request to the upstream server that its method, name or URI selects.

use std::sync::Arc;

use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{RawObject, code},
};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::TargetName,
    catalog::names::{ResolvedName, parse_own_uri},
    convert::ListKind,
    gateway::GatewayState,
    lifecycle::is_stateless,
    lock,
    policy::Refusal,
    raw_json::{edit, quote},
};

impl GatewayState {
    /// Relays one request.
    pub(crate) async fn handle(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        self.watch_connection(request);
        if let Some(kind) = ListKind::from_method(request.method()) {
            return self.list(kind, request).await;
        }
        match request.method() {
            "tools/call" => self.relay_named(ListKind::Tools, "name", request).await,
            "prompts/get" => self.relay_named(ListKind::Prompts, "name", request).await,
            "resources/read" => self.relay_named(ListKind::Resources, "uri", request).await,
            "resources/subscribe" | "resources/unsubscribe" => self.subscribe(request).await,
            "completion/complete" => self.complete(request).await,
            "logging/setLevel" => self.set_log_level(request).await,
            method if method.starts_with("tasks/") => Err(RpcError::method_not_found(method)),
            method => match self.servers().only() {
                Some(server) => {
                    self.limit_rate(server, request)?;
                    self.relay_call(server, request, None).await
                }
                None => Err(RpcError::method_not_found(method)),
            },
        }
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
        let params = RawObject::parse(request.params())?;
        let missing = || RpcError::invalid_params(format!("`{member}` is missing"));
        let name = params.string(member)?.ok_or_else(missing)?;
        let resolved = self.resolve(kind, &name, request).await?;
        let target = TargetName {
            member,
            value: quote(&resolved.original),
            original: resolved.original,
        };
        let server = self.server(resolved.server)?;
        self.relay_call(&server, request, Some(&target)).await
    }

    /// Finds the server of a name or URI, and applies the policy to the name that the server uses.
    pub(crate) async fn resolve(
        self: &Arc<Self>,
        kind: ListKind,
        name: &str,
        request: &RelayedRequest,
    ) -> Result<ResolvedName, RpcError> {
        let resolved = match self.find(kind, name) {
            Some(resolved) => Some(resolved),
            None => {
                // The lists may have changed, or were never requested.
                self.refresh_names(kind, request).await;
                self.find(kind, name)
            }
        };
        let Some(resolved) = resolved else {
            return Err(self.unknown(kind, name, request));
        };
        let server = self.server(resolved.server)?;
        let authorized = self.authorize(&server, kind, &resolved.original, request);
        match authorized.await {
            Ok(()) => Ok(resolved),
            Err(Refusal::Denied) => Err(self.unknown(kind, name, request)),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    pub(crate) fn find(&self, kind: ListKind, name: &str) -> Option<ResolvedName> {
        let servers = self.servers();
        let of_server = |server| ResolvedName {
            server,
            original: name.to_owned(),
        };
        if kind == ListKind::Resources
            && let Some((server, original)) = parse_own_uri(name)
        {
            let server = servers.by_name(server)?.id;
            return Some(ResolvedName { server, original });
        }
        let is_uri = matches!(kind, ListKind::Resources | ListKind::Templates);
        if let Some(only) = servers.only()
            && (is_uri || !servers.has_prefix)
        {
            return Some(of_server(only.id));
        }
        let names = lock(&self.names);
        let found = names[kind as usize].get(name).cloned();
        // The names may be those of a set before the last reload.
        let found = found.filter(|found| servers.by_id(found.server).is_some());
        if kind != ListKind::Resources {
            return found;
        }
        let by_scheme = || {
            let templates = &names[ListKind::Templates as usize];
            let by_resources = names[kind as usize].only_server_of_scheme(name);
            match (by_resources, templates.only_server_of_scheme(name)) {
                (Some(server), None) | (None, Some(server)) => Some(of_server(server)),
                (Some(first), Some(second)) if first == second => Some(of_server(first)),
                _ => None,
            }
        };
        found.or_else(by_scheme)
    }

    pub(crate) async fn refresh_names(self: &Arc<Self>, kind: ListKind, request: &RelayedRequest) {
        self.collect(kind, request).await;
        if kind == ListKind::Resources {
            self.collect(ListKind::Templates, request).await;
        }
    }

    /// Returns the error for a name that no server has.
    pub(crate) fn unknown(&self, kind: ListKind, name: &str, request: &RelayedRequest) -> RpcError {
        let servers = self.servers();
        let down: Vec<_> = servers
            .iter()
            .filter(|server| !server.is_up())
            .map(|server| server.name())
            .collect();
        let item = match kind {
            ListKind::Tools => "tool",
            ListKind::Prompts => "prompt",
            ListKind::Resources | ListKind::Templates => "resource",
        };
        let mut message = format!("unknown {item} `{name}`");
        if !down.is_empty() {
            message.push_str(&format!("; these servers are down: {}", down.join(", ")));
        }
        let code = match kind {
            ListKind::Resources if !is_stateless(request.revision()) => code::RESOURCE_NOT_FOUND,
            _ => code::INVALID_PARAMS,
        };
        RpcError::new(code, message)
    }

    /// Completes an argument of a prompt or a variable of a template.
    pub(crate) async fn complete(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
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
            original: resolved.original,
        };
        let server = self.server(resolved.server)?;
        self.relay_call(&server, request, Some(&target)).await
    }
}
