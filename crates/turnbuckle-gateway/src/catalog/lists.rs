//! The lists of all upstream servers, as clients see them.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::task::JoinSet;
use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::running::RunningCall,
    catalog::names::NameTable,
    convert::{self, ListKind},
    errors,
    gateway::{GatewayState, SERVER_TIMEOUT},
    lifecycle::RevisionPair,
    lock,
    raw_json::{ObjectWriter, edit, quote},
    upstream::{UpstreamServer, list_cache::ListItem, pool::caller_key},
};

impl GatewayState {
    /// Returns a list of all servers as one page.
    pub(crate) async fn list(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let params = RawObject::parse(request.params())?;
        if params.get("cursor").is_some_and(|cursor| cursor != "null") {
            return Err(RpcError::invalid_params(
                "unknown `cursor`: this list has one page",
            ));
        }
        let collected = self.collect(kind, request).await;
        let servers = self.servers();
        if let (Some(_), Some(error)) = (servers.only(), collected.error) {
            return Err(error);
        }
        let mut result = ObjectWriter::new();
        result.member(
            kind.items_member(),
            &format!("[{}]", collected.items.join(",")),
        );
        if servers.len() > 1 {
            let meta = json!({ "dev.turnbuckle/servers": self.server_states() });
            result.member("_meta", &meta.to_string());
        }
        let pair = RevisionPair::of_own_result(request.revision());
        convert::result(kind.method(), &result.finish(), pair, &self.identity)
    }

    /// Requests a list from all servers at the same time, and names its items for clients.
    pub(crate) async fn collect(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> CollectedList {
        let mut requests = JoinSet::new();
        let servers = self.servers();
        let limit = if servers.only().is_some() {
            Duration::MAX
        } else {
            SERVER_TIMEOUT
        };
        for (index, server) in servers.iter().enumerate() {
            let (state, server, request) = (Arc::clone(self), Arc::clone(server), request.clone());
            requests.spawn(async move {
                let listed = tokio::time::timeout(limit, state.list_of(&server, kind, &request));
                let timeout = |_| Err(errors::unreachable(server.name(), "timeout"));
                (index, listed.await.unwrap_or_else(timeout))
            });
        }
        let mut lists = requests.join_all().await;
        lists.sort_by_key(|(index, _)| *index);
        let mut collected = CollectedList::default();
        let mut names = NameTable::default();
        for (index, listed) in lists {
            match listed {
                Ok((items, pair)) => {
                    let server = &servers[index];
                    let has_prefix = servers.has_prefix;
                    add_items(
                        kind,
                        server,
                        has_prefix,
                        &items,
                        pair,
                        &mut names,
                        &mut collected.items,
                    );
                }
                Err(error) => collected.error = Some(error),
            }
        }
        lock(&self.names)[kind as usize] = names;
        collected
    }

    pub(crate) async fn list_of(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<(Arc<Vec<ListItem>>, RevisionPair), RpcError> {
        let downstream = request.revision();
        let opening = RevisionPair {
            downstream,
            upstream: downstream,
        };
        let opener = RunningCall::new(request, caller_key(request), opening);
        let connection = self.pool.get(server, request, Some(&opener)).await?;
        let items = connection.list(kind).await;
        connection.opener_ended(&opener);
        let upstream = connection.revision();
        Ok((
            items?,
            RevisionPair {
                downstream,
                upstream,
            },
        ))
    }
}

/// Adds the items of a server under the names that clients see. Invalid ones are left out.
pub(crate) fn add_items(
    kind: ListKind,
    server: &UpstreamServer,
    has_prefix: bool,
    items: &[ListItem],
    pair: RevisionPair,
    names: &mut NameTable,
    out: &mut Vec<String>,
) {
    for item in items
        .iter()
        .filter(|item| server.policy.permits(kind, &item.name))
    {
        let seen = match kind {
            ListKind::Resources => names.add_uri(server.id, server.name(), &item.name),
            ListKind::Templates => names.add_uri(server.id, server.name(), &item.name),
            ListKind::Tools | ListKind::Prompts if has_prefix => {
                names.add_prefixed(server.id, server.name(), &item.name)
            }
            ListKind::Tools | ListKind::Prompts => {
                if !names.add_first(server.id, &item.name) {
                    continue;
                }
                item.name.clone()
            }
        };
        let converted = kind.item(&item.json, pair).and_then(|json| {
            if seen == item.name {
                return Ok(json);
            }
            edit(&json, &[], &[(kind.name_member(), quote(&seen))])
        });
        match converted {
            Ok(json) => out.push(json),
            Err(error) => tracing::warn!(
                server = server.name(),
                item = item.name,
                error = %error.message,
                "an invalid item is left out"
            ),
        }
    }
}

/// A list of several servers.
#[derive(Default)]
pub(crate) struct CollectedList {
    /// The items, as JSON.
    items: Vec<String>,
    /// The error of a server that did not return its list.
    error: Option<RpcError>,
}
