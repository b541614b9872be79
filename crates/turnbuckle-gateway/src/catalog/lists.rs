//! The lists of tools and prompts of all upstream servers, as clients see them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{task::JoinSet, time::Instant};
use turnbuckle_protocol::{Revision, RpcError, jsonrpc::Params};
use turnbuckle_server::relay::{RelayedRequest, RelayedResult};

use crate::{
    calls::running::RunningCall,
    catalog::{
        login_tool::list_before_login,
        merged_list::MergedList,
        names::Naming,
        server_states::{DOWN_LIST_LIFETIME, META_KEY},
    },
    convert::ListKind,
    errors,
    gateway::{GatewayState, SERVER_TIMEOUT},
    hops::Hops,
    lifecycle::RevisionPair,
    lock,
    raw_json::quote,
    upstream::{
        Sharing, UpstreamServer,
        list_cache::{CurrentList, ShownList},
        pool::caller_key,
    },
};

/// Lifetime of the cursor of a page.
pub(crate) const CURSOR_LIFETIME: Duration = Duration::from_secs(3600);
/// Time in which a list is used again if each call has a connection of its own.
const UNCONNECTED_LIFETIME: Duration = Duration::from_secs(30);

/// How long clients may use a list, and who.
#[derive(Clone, Copy)]
pub(crate) struct ClientHint {
    stale_at: Option<Instant>,
    is_private: bool,
}

impl ClientHint {
    /// The hint for a list without parts.
    pub(crate) fn unlimited() -> Self {
        Self {
            stale_at: None,
            is_private: false,
        }
    }

    /// Adds a part with a lifetime of its own.
    pub(crate) fn add(&mut self, part: &CurrentList) {
        let stale_at = self
            .stale_at
            .map_or(part.stale_at, |at| at.min(part.stale_at));
        self.stale_at = Some(stale_at);
        self.is_private |= part.is_private;
    }

    /// Adds something that is not cached.
    pub(crate) fn add_uncached(&mut self) {
        self.stale_at = Some(Instant::now());
        self.is_private = true;
    }

    /// Returns the members of a list result.
    pub(crate) fn members(self) -> String {
        let now = Instant::now();
        let ttl = self.stale_at.map(|at| at.saturating_duration_since(now));
        let ttl = ttl.unwrap_or_default().as_millis();
        let scope = if self.is_private { "private" } else { "public" };
        format!(r#","ttlMs":{ttl},"cacheScope":"{scope}""#)
    }
}

/// A merged list that all callers see.
pub(crate) struct HotList {
    list: CollectedList,
    generation: u64,
    expires: Option<Instant>,
}

/// A list of several servers.
#[derive(Clone)]
pub(crate) struct CollectedList {
    pub(crate) list: Arc<MergedList>,
    hint: ClientHint,
    /// The error of a server that did not return its list.
    error: Option<RpcError>,
}

/// The list of a server for a request, or why there is none.
pub(crate) enum ServerPart {
    Current(CurrentList),
    /// The last list of a server that is down.
    Last(CurrentList),
    /// The server is down.
    Down,
    Failed(RpcError),
}

impl GatewayState {
    /// Returns a page of the tools or prompts of all servers.
    pub(crate) async fn list(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<RelayedResult, RpcError> {
        let params = request.parsed_params();
        // Also if the list is in memory: a request that came back gets none.
        Hops::of_request(&params, &self.id)?;
        let collected = self.collect(kind, request).await;
        if let (Some(_), Some(error)) = (self.only_server(), collected.error) {
            return Err(error);
        }
        let list = &collected.list;
        let start = match cursor(&params)? {
            Some(cursor) => page_start(kind, list, &cursor, request)?,
            None => 0,
        };
        let revision = request.revision();
        let map_uri =
            |server: &UpstreamServer, uri: &str| self.shown_uri(ListKind::Resources, server, uri);
        let finish = |items: String| items + &self.list_members(revision);
        let (head, next) = list.page(start, revision, &map_uri, finish);
        let next = next.filter(|next| *next < list.len()).map(|next| {
            let last = list.name(next - 1).as_bytes();
            request.seal(last, kind.method(), CURSOR_LIFETIME)
        });
        Ok(self.list_result(head, next.as_deref(), collected.hint, revision))
    }

    /// Returns the members after the items that are the same for all pages, without the closing brace.
    pub(crate) fn list_members(&self, revision: Revision) -> String {
        let is_modern = RevisionPair::of_own_result(revision).adds_result_members();
        let identity = is_modern.then(|| {
            let members = self.identity.as_meta().strip_prefix('{');
            members
                .and_then(|members| members.strip_suffix('}'))
                .unwrap_or_default()
        });
        let states = self.servers().len() > 1;
        let states = states.then(|| format!("\"{META_KEY}\":{}", self.server_states()));
        let meta: Vec<_> = states.iter().map(String::as_str).chain(identity).collect();
        let mut members = String::new();
        if is_modern {
            members.push_str(r#","resultType":"complete""#);
        }
        if !meta.is_empty() {
            members.push_str(&format!(r#","_meta":{{{}}}"#, meta.join(",")));
        }
        members
    }

    /// Completes the result of a list.
    pub(crate) fn list_result(
        &self,
        head: Bytes,
        next_cursor: Option<&str>,
        hint: ClientHint,
        revision: Revision,
    ) -> RelayedResult {
        let mut tail = String::new();
        if let Some(cursor) = next_cursor {
            tail.push_str(&format!(r#","nextCursor":{}"#, quote(cursor)));
        }
        if RevisionPair::of_own_result(revision).adds_result_members() {
            tail.push_str(&hint.members());
        }
        tail.push('}');
        RelayedResult::in_parts(head, tail)
    }

    /// Returns the tools or prompts of all servers for the caller of a request.
    pub(crate) async fn collect(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> CollectedList {
        let (generation, states) = (self.catalog.generation(kind), self.catalog.states_version());
        if let Some(hot) = &*self.catalog.hot(kind).load()
            && hot.generation == generation
            && hot.expires.is_none_or(|expires| Instant::now() < expires)
        {
            return hot.list.clone();
        }
        let servers = self.servers();
        let (mut parts, mut error) = (Vec::new(), None);
        let mut hint = ClientHint::unlimited();
        let mut expires: Option<Instant> = None;
        for (server, part) in self.parts(kind, request).await {
            match part {
                ServerPart::Current(current) => {
                    hint.add(&current);
                    expires = expires.into_iter().chain(current.expires).min();
                    parts.push((server, current.list));
                }
                ServerPart::Last(last) => {
                    hint.add_uncached();
                    parts.push((server, last.list));
                }
                ServerPart::Down => hint.add_uncached(),
                ServerPart::Failed(failure) => {
                    hint.add_uncached();
                    error = Some(failure);
                }
            }
        }
        let merge = |parts| {
            let naming = self.naming();
            let mut names = lock(self.catalog.names(kind));
            let page_size = self.catalog.settings.page_size;
            MergedList::new(kind, parts, states, &naming.naming(), &mut names, page_size)
        };
        let matches = |list: &MergedList| list.is_made_of(&parts, states);
        let list = self.catalog.merged(kind, matches, || merge(parts.clone()));
        let collected = CollectedList { list, hint, error };
        let is_same_for_all = servers.iter().all(|server| server.is_shared_by_all());
        if is_same_for_all && collected.error.is_none() {
            self.catalog.hot(kind).store(Some(Arc::new(HotList {
                list: collected.clone(),
                generation,
                expires,
            })));
        }
        collected
    }

    /// Requests a list from all servers at the same time, in the order of the configuration.
    pub(crate) async fn parts(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Vec<(Arc<UpstreamServer>, ServerPart)> {
        let servers = self.servers();
        let is_single = servers.len() == 1;
        let mut requests = JoinSet::new();
        for (position, server) in servers.iter().enumerate() {
            let (state, server, request) = (Arc::clone(self), Arc::clone(server), request.clone());
            requests.spawn(async move {
                let part = state.part(&server, kind, &request, is_single).await;
                (position, server, part)
            });
        }
        let mut parts = requests.join_all().await;
        parts.sort_by_key(|(position, ..)| *position);
        let parts = parts.into_iter().map(|(_, server, part)| (server, part));
        parts
            .inspect(|(server, part)| {
                server.lists.set_shown(
                    kind,
                    match part {
                        ServerPart::Current(shown) | ServerPart::Last(shown) => {
                            ShownList::List(Arc::clone(&shown.list))
                        }
                        ServerPart::Down | ServerPart::Failed(_) => ShownList::Absent,
                    },
                );
            })
            .collect()
    }

    async fn part(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        request: &RelayedRequest,
        is_single: bool,
    ) -> ServerPart {
        if !is_single && !server.is_available() {
            return down_part(server, kind);
        }
        if server.settings.sharing == Sharing::Call
            && let Some(last) = server.last_list(kind)
            && last.received.elapsed() < UNCONNECTED_LIFETIME
        {
            return ServerPart::Current(last);
        }
        let limit = if is_single {
            Duration::MAX
        } else {
            SERVER_TIMEOUT
        };
        let listed = tokio::time::timeout(limit, self.list_of(server, kind, request)).await;
        let timeout = |_| Err(errors::unreachable(server.name(), "timeout"));
        match listed.unwrap_or_else(timeout) {
            Ok(current) => ServerPart::Current(current),
            Err(_) if !is_single && !server.is_up() => down_part(server, kind),
            Err(error) => match list_before_login(server, kind, &error) {
                Some(list) => ServerPart::Current(list),
                None => ServerPart::Failed(error),
            },
        }
    }

    pub(crate) async fn list_of(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<CurrentList, RpcError> {
        let params = request.parsed_params();
        let hops = Hops::of_request(&params, &self.id)?;
        let label = self.server_label(server);
        let opener = RunningCall::new(request, &params, caller_key(request), label);
        let connection = self.pool.get(server, request, Some(&opener)).await?;
        let _opener = connection.opener_guard(&opener);
        connection.list_for(kind, Some(hops)).await
    }

    /// Returns the names of the servers, from which names of their items are made.
    pub(crate) fn naming(&self) -> ServerNames {
        let servers = self.servers();
        ServerNames {
            names: servers
                .iter()
                .map(|server| Arc::clone(&server.settings.name))
                .collect(),
            has_prefix: servers.has_prefix,
            max_length: self.catalog.settings.max_name_length,
        }
    }
}

/// The names of all servers.
pub(crate) struct ServerNames {
    names: Vec<Arc<str>>,
    has_prefix: bool,
    max_length: usize,
}

impl ServerNames {
    fn naming(&self) -> Naming<'_> {
        let names = self.names.iter().map(|name| &**name);
        Naming::new(names, self.has_prefix, self.max_length)
    }
}

/// Returns the list of a server that is down: the last one for some time.
fn down_part(server: &UpstreamServer, kind: ListKind) -> ServerPart {
    let last = server.last_list(kind);
    match last.filter(|_| {
        server
            .down_time()
            .is_some_and(|time| time < DOWN_LIST_LIFETIME)
    }) {
        Some(last) => ServerPart::Last(last),
        None => ServerPart::Down,
    }
}

/// Returns the cursor of a list request.
pub(crate) fn cursor(params: &Params<'_>) -> Result<Option<String>, RpcError> {
    if params.get("cursor") == Some("null") {
        return Ok(None);
    }
    Ok(params.string("cursor")?.map(String::from))
}

/// Returns the error for a cursor that the gateway has not given to this caller for this list.
pub(crate) fn unknown_cursor() -> RpcError {
    RpcError::invalid_params("unknown `cursor`; request the list without one")
}

/// Returns the position after the last item of the page before.
fn page_start(
    kind: ListKind,
    list: &MergedList,
    cursor: &str,
    request: &RelayedRequest,
) -> Result<usize, RpcError> {
    let last = request.open(cursor, kind.method());
    let last = last.and_then(|last| String::from_utf8(last).ok());
    let last = last.ok_or_else(unknown_cursor)?;
    let changed = || RpcError::invalid_params("the list has changed; request it without `cursor`");
    Ok(list.position(&last).ok_or_else(changed)? + 1)
}
