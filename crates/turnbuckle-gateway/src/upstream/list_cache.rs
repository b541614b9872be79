//! The lists of an upstream server, kept in memory until they change.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{json, value::RawValue};
use tokio::time::Instant;
use turnbuckle_protocol::{
    Revision, RpcError,
    jsonrpc::{RawObject, Truncated},
};

use crate::{
    convert::ListKind,
    errors,
    hops::Hops,
    lock,
    raw_json::ObjectWriter,
    tool_lock::PagePosition,
    upstream::{
        connection::Connection,
        tool_index::{CachedToolIndex, check_param_headers},
    },
};

/// Lifetime of a list of a server that neither announces changes nor gives its lifetime.
const UNANNOUNCED_LIFETIME: Duration = Duration::from_secs(30);
/// Maximum lifetime that a server can give.
const MAX_LIFETIME: Duration = Duration::from_secs(3600);
/// Maximum time to request a list, with all its pages.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// Lifetime of a list of a modern server that gives none and announces no changes: one request is enough for several
/// clients at the same time.
const LEAST_LIFETIME: Duration = Duration::from_secs(1);
/// Time in which a list that could not be had is not requested again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(2);

const MAX_PAGES: usize = 1_000;
const MAX_ITEMS: usize = 20_000;
/// Maximum total size of a list.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Maximum size of a definition.
const MAX_ITEM_BYTES: usize = 1024 * 1024;
/// Maximum number of different lists of a server that are compared with a new one.
const MAX_VARIANTS: usize = 8;

/// An item of a list, in the revision of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListItem {
    /// The name, URI or URI template.
    pub(crate) name: String,
    /// The definition, as received.
    pub(crate) json: String,
}

/// A list of a server: all tools or prompts, or the first page of its resources.
#[derive(Debug)]
pub(crate) struct ServerList {
    /// Lists with equal items have the same id.
    pub(crate) id: u64,
    pub(crate) items: Vec<ListItem>,
    pub(crate) revision: Revision,
    /// Whether this is the last page.
    pub(crate) is_complete: bool,
}

/// Returns a new id of a list.
pub(crate) fn next_list_id() -> u64 {
    static NEXT_ID: AtomicU64 = AtomicU64::new(1);
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A list, and how long it can be used.
#[derive(Clone, Debug)]
pub(crate) struct CurrentList {
    pub(crate) list: Arc<ServerList>,
    /// The cursor of the next page.
    pub(crate) next_cursor: Option<String>,
    pub(crate) received: Instant,
    /// When the gateway requests it again. `None`: when it has changed.
    pub(crate) expires: Option<Instant>,
    /// When clients have to request it again.
    pub(crate) stale_at: Instant,
    /// Whether clients may not share it.
    pub(crate) is_private: bool,
}

/// A page of a list.
pub(crate) struct ListPage {
    pub(crate) items: Vec<ListItem>,
    pub(crate) next_cursor: Option<String>,
    pub(crate) revision: Revision,
    hint: LifetimeHint,
}

/// What a modern server says about the lifetime of a list.
#[derive(Clone, Copy)]
struct LifetimeHint {
    ttl: Duration,
    is_private: bool,
}

/// The lists of one connection.
#[derive(Default)]
pub(crate) struct ListCache {
    lists: [ListSlot; 4],
    pub(crate) tool_index: CachedToolIndex,
}

#[derive(Default)]
struct ListSlot {
    /// Locked while the list is requested, so that only one caller does it.
    fetching: tokio::sync::Mutex<()>,
    content: Mutex<SlotContent>,
    /// Incremented when the list changes, so that a list that was requested before is not kept.
    version: AtomicU64,
}

#[derive(Default)]
struct SlotContent {
    /// The last list, with its version. It may have changed since.
    last: Option<(CurrentList, u64)>,
    /// The list that changes are compared with: the one after the last change that was announced, or the first one. Some
    /// clients may have requested a newer one.
    announced: Option<Arc<ServerList>>,
    failure: Option<(RpcError, Instant)>,
}

impl ListCache {
    /// Notes that a list has changed.
    pub(crate) fn invalidate(&self, kind: ListKind) {
        let slot = &self.lists[kind as usize];
        slot.version.fetch_add(1, Ordering::AcqRel);
        lock(&slot.content).failure = None;
    }

    /// Returns the list that later changes are compared with.
    pub(crate) fn announced(&self, kind: ListKind) -> Option<Arc<ServerList>> {
        let content = lock(&self.lists[kind as usize].content);
        content.announced.clone()
    }

    /// Compares later changes with this list.
    pub(crate) fn set_announced(&self, kind: ListKind, list: Arc<ServerList>) {
        lock(&self.lists[kind as usize].content).announced = Some(list);
    }

    /// Returns the list if it is in memory, or the error of an attempt that was just made.
    fn get(&self, kind: ListKind) -> Option<Result<CurrentList, RpcError>> {
        let slot = &self.lists[kind as usize];
        let (version, now) = (slot.version.load(Ordering::Acquire), Instant::now());
        let content = lock(&slot.content);
        if let Some((current, of_version)) = &content.last
            && *of_version == version
            && current.expires.is_none_or(|expires| now < expires)
        {
            return Some(Ok(current.clone()));
        }
        match &content.failure {
            Some((error, until)) if now < *until => Some(Err(error.clone())),
            _ => None,
        }
    }
}

/// The lists of a server on all its connections.
#[derive(Default)]
pub(crate) struct ServerLists {
    kinds: [Mutex<KnownLists>; 4],
}

#[derive(Default)]
struct KnownLists {
    /// The last list, which is shown for some time after the server went down.
    last: Option<CurrentList>,
    variants: VecDeque<Weak<ServerList>>,
    shown: ShownList,
    /// Why the list cannot be used, although the server is up.
    failure: Option<String>,
}

/// What clients have last seen of a list of a server.
#[derive(Clone, Debug, Default)]
pub(crate) enum ShownList {
    /// No client has requested the list.
    #[default]
    Never,
    /// The server was left out.
    Absent,
    List(Arc<ServerList>),
}

impl ServerLists {
    /// Returns the last list of any connection.
    pub(crate) fn last(&self, kind: ListKind) -> Option<CurrentList> {
        lock(&self.kinds[kind as usize]).last.clone()
    }

    /// Returns why a list of the server cannot be used.
    pub(crate) fn failure(&self) -> Option<String> {
        let mut kinds = self.kinds.iter();
        kinds.find_map(|known| lock(known).failure.clone())
    }

    fn set_failure(&self, kind: ListKind, error: &RpcError) {
        let reason = error.data.as_ref().and_then(|data| data.get("reason"));
        let reason = reason.and_then(|reason| reason.as_str());
        lock(&self.kinds[kind as usize]).failure = reason.map(String::from);
    }

    pub(crate) fn shown(&self, kind: ListKind) -> ShownList {
        lock(&self.kinds[kind as usize]).shown.clone()
    }

    pub(crate) fn set_shown(&self, kind: ListKind, shown: ShownList) {
        lock(&self.kinds[kind as usize]).shown = shown;
    }

    /// Returns a list with these items: a known one if they are equal.
    fn intern(&self, kind: ListKind, page: ListPage, lifetime: Lifetime) -> CurrentList {
        let mut known = lock(&self.kinds[kind as usize]);
        let is_complete = page.next_cursor.is_none();
        let equal = known
            .variants
            .iter()
            .filter_map(Weak::upgrade)
            .find(|list| {
                list.is_complete == is_complete
                    && list.revision == page.revision
                    && list.items == page.items
            });
        let list = equal.unwrap_or_else(|| {
            let list = Arc::new(ServerList {
                id: next_list_id(),
                items: page.items,
                revision: page.revision,
                is_complete,
            });
            known.variants.retain(|list| list.strong_count() > 0);
            if known.variants.len() >= MAX_VARIANTS {
                known.variants.pop_front();
            }
            known.variants.push_back(Arc::downgrade(&list));
            list
        });
        let current = CurrentList {
            list,
            next_cursor: page.next_cursor,
            received: Instant::now(),
            expires: lifetime.expires,
            stale_at: lifetime.stale_at,
            is_private: lifetime.is_private,
        };
        known.last = Some(current.clone());
        known.failure = None;
        current
    }
}

#[derive(Clone, Copy)]
struct Lifetime {
    expires: Option<Instant>,
    stale_at: Instant,
    is_private: bool,
}

impl Connection {
    /// Returns a list for the gateway itself.
    pub(crate) async fn list(self: &Arc<Self>, kind: ListKind) -> Result<CurrentList, RpcError> {
        self.list_for(kind, None).await
    }

    /// Returns a list, from memory if possible. It is requested only once at a time, also if its callers give up. `hops`
    /// are those of the request of a client.
    pub(crate) async fn list_for(
        self: &Arc<Self>,
        kind: ListKind,
        hops: Option<Hops>,
    ) -> Result<CurrentList, RpcError> {
        if let Some(known) = self.lists().get(kind) {
            return known;
        }
        let connection = Arc::clone(self);
        let fetch = tokio::spawn(async move { connection.fetch_once(kind, hops).await });
        let cancelled = |_| Err(RpcError::internal("the list was not requested"));
        fetch.await.unwrap_or_else(cancelled)
    }

    async fn fetch_once(
        &self,
        kind: ListKind,
        hops: Option<Hops>,
    ) -> Result<CurrentList, RpcError> {
        let slot = &self.lists().lists[kind as usize];
        let _fetching = slot.fetching.lock().await;
        if let Some(known) = self.lists().get(kind) {
            return known;
        }
        let version = slot.version.load(Ordering::Acquire);
        let fetched = self.fetch_list(kind, hops.as_ref());
        let fetched = tokio::time::timeout(FETCH_TIMEOUT, fetched).await;
        let timeout = |_| Err(errors::unreachable(self.server.name(), "timeout"));
        match fetched.unwrap_or_else(timeout) {
            Ok(page) => {
                let lifetime = self.lifetime(kind, page.hint);
                self.server.tool_lock.listed(kind, lifetime.expires);
                let current = self.server.lists.intern(kind, page, lifetime);
                let mut content = lock(&slot.content);
                content.last = Some((current.clone(), version));
                let announced = &mut content.announced;
                announced.get_or_insert_with(|| Arc::clone(&current.list));
                content.failure = None;
                Ok(current)
            }
            Err(error) => {
                let until = Instant::now() + FAILURE_LIFETIME;
                lock(&slot.content).failure = Some((error.clone(), until));
                self.server.lists.set_failure(kind, &error);
                Err(error)
            }
        }
    }

    /// Returns how long a list can be used. Changes that are announced end it earlier.
    fn lifetime(&self, kind: ListKind, hint: LifetimeHint) -> Lifetime {
        let now = Instant::now();
        let expires = if !hint.ttl.is_zero() {
            Some(now + hint.ttl)
        } else if self.announces(kind) {
            None
        } else if self.server.is_stateless() && !self.declares_changes(kind) {
            Some(now + LEAST_LIFETIME)
        } else {
            Some(now + UNANNOUNCED_LIFETIME)
        };
        Lifetime {
            expires,
            stale_at: now + hint.ttl,
            is_private: hint.is_private || self.server.settings.is_per_caller(),
        }
    }

    /// Compares all definitions with the tool lock of the server, if it has one.
    pub(crate) async fn check_definitions(self: &Arc<Self>) {
        if !self.server.tool_lock.is_set() {
            return;
        }
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Templates] {
            let mut next = self.list(kind).await.map(|list| list.next_cursor);
            for _ in 0..MAX_PAGES {
                let Ok(Some(cursor)) = &next else {
                    break;
                };
                let page = self.page(kind, Some(cursor), None).await;
                next = page.map(|page| page.next_cursor.filter(|next| next != cursor));
            }
            if let Err(error) = next {
                let (server, list) = (self.server.name(), kind.items_member());
                tracing::warn!(server, list, %error, "a list cannot be compared with the tool lock");
            }
        }
    }

    /// Returns whether the server has this kind of items.
    pub(crate) fn has(&self, kind: ListKind) -> bool {
        let server = self.client.server();
        let capabilities = &server.capabilities;
        match kind {
            ListKind::Tools => capabilities.tools.is_some(),
            ListKind::Prompts => capabilities.prompts.is_some(),
            ListKind::Resources | ListKind::Templates => capabilities.resources.is_some(),
        }
    }

    /// Returns whether the server announces changes of the list at the moment.
    fn announces(&self, kind: ListKind) -> bool {
        let is_heard = !self.has_listen_requests() || self.is_granted(kind);
        is_heard && self.declares_changes(kind)
    }

    /// Returns whether the server says that it announces changes of the list.
    fn declares_changes(&self, kind: ListKind) -> bool {
        let server = self.client.server();
        let capabilities = &server.capabilities;
        let declared = match kind {
            ListKind::Tools => capabilities
                .tools
                .as_ref()
                .and_then(|list| list.list_changed),
            ListKind::Prompts => capabilities
                .prompts
                .as_ref()
                .and_then(|list| list.list_changed),
            ListKind::Resources | ListKind::Templates => capabilities
                .resources
                .as_ref()
                .and_then(|list| list.list_changed),
        };
        declared == Some(true)
    }

    /// Requests a list: all pages of tools and prompts, and the first page of resources and templates.
    async fn fetch_list(&self, kind: ListKind, hops: Option<&Hops>) -> Result<ListPage, RpcError> {
        let mut list = ListPage {
            items: Vec::new(),
            next_cursor: None,
            revision: self.revision(),
            hint: LifetimeHint {
                ttl: MAX_LIFETIME,
                is_private: false,
            },
        };
        if !self.has(kind) {
            let position = PagePosition {
                is_first: true,
                is_last: true,
            };
            self.server.tool_lock.filter(kind, Vec::new(), position);
            return Ok(list);
        }
        let mut bytes = 0;
        for _ in 0..MAX_PAGES {
            let page = self.page(kind, list.next_cursor.as_deref(), hops).await?;
            bytes += page.items.iter().map(|item| item.json.len()).sum::<usize>();
            list.items.extend(page.items);
            list.hint.ttl = list.hint.ttl.min(page.hint.ttl);
            list.hint.is_private |= page.hint.is_private;
            if list.items.len() > MAX_ITEMS {
                return Err(self.too_long(kind, &format!("has more than {MAX_ITEMS} entries")));
            }
            if bytes > MAX_BYTES {
                return Err(self.too_long(kind, &format!("has more than {MAX_BYTES} bytes")));
            }
            let is_repeated = page.next_cursor.is_some() && page.next_cursor == list.next_cursor;
            list.next_cursor = page.next_cursor;
            if is_repeated {
                return Err(self.too_long(kind, "repeats a cursor"));
            }
            if list.next_cursor.is_none() || !kind.fetches_all_pages() {
                return Ok(list);
            }
        }
        Err(self.too_long(kind, &format!("has more than {MAX_PAGES} pages")))
    }

    /// Requests a page of a list. `hops` are those of the request of a client.
    pub(crate) async fn page(
        &self,
        kind: ListKind,
        cursor: Option<&str>,
        hops: Option<&Hops>,
    ) -> Result<ListPage, RpcError> {
        let requested = self.request(kind.method(), cursor_params(cursor), hops);
        let page = requested
            .await
            .map_err(|error| errors::call_failure(self.server.name(), error))?;
        let parsed = self.read_page(kind, page.json());
        let mut page =
            parsed.map_err(|error| errors::invalid_result(self.server.name(), &error))?;
        let position = PagePosition {
            is_first: cursor.is_none(),
            is_last: page.next_cursor.is_none(),
        };
        page.items = self.server.tool_lock.filter(kind, page.items, position);
        Ok(page)
    }

    /// Reads a page. Items that cannot be used are left out.
    fn read_page(&self, kind: ListKind, page: &str) -> Result<ListPage, RpcError> {
        let page = RawObject::parse(page)?;
        let list = page.get(kind.items_member()).unwrap_or("[]");
        let list: Vec<&RawValue> =
            turnbuckle_protocol::json::from_str(list).map_err(RpcError::from)?;
        let mut items = Vec::with_capacity(list.len().min(MAX_ITEMS));
        for item in list {
            let name = RawObject::parse(item.get()).and_then(|item| {
                let name = item.string(kind.name_member())?;
                Ok(name.map(String::from))
            });
            match name {
                Ok(Some(name)) if !self.can_be_called(kind, &name, item.get()) => {}
                Ok(Some(name)) if item.get().len() <= MAX_ITEM_BYTES => items.push(ListItem {
                    name,
                    json: item.get().to_owned(),
                }),
                _ => tracing::warn!(
                    server = self.server.name(),
                    list = kind.items_member(),
                    bytes = item.get().len(),
                    "an item without a name or above the size limit is left out"
                ),
            }
        }
        let ttl = page.get("ttlMs").and_then(|ttl| ttl.parse::<f64>().ok());
        let ttl = ttl.filter(|ttl| *ttl > 0.0).unwrap_or(0.0);
        let ttl = Duration::try_from_secs_f64(ttl / 1_000.0).unwrap_or(MAX_LIFETIME);
        let cursor = page.string("nextCursor")?;
        Ok(ListPage {
            items,
            next_cursor: cursor.map(String::from),
            revision: self.revision(),
            hint: LifetimeHint {
                ttl: ttl.min(MAX_LIFETIME),
                is_private: page.string("cacheScope")?.as_deref() != Some("public"),
            },
        })
    }

    /// Returns whether an item of a list can be used. Over HTTP since 2026-07-28, arguments of tools are repeated in
    /// headers.
    fn can_be_called(&self, kind: ListKind, name: &str, item: &str) -> bool {
        if kind != ListKind::Tools || !self.client.sends_param_headers() {
            return true;
        }
        match check_param_headers(item) {
            Ok(()) => true,
            Err(error) => {
                let (server, tool) = (self.server.name(), Truncated(name));
                tracing::warn!(server, %tool, %error, "a tool that cannot be called over HTTP is left out");
                false
            }
        }
    }

    fn too_long(&self, kind: ListKind, violation: &str) -> RpcError {
        let (server, list) = (self.server.name(), kind.items_member());
        let reason = format!("the list `{list}` {violation}");
        tracing::warn!(server, reason, "a list cannot be used");
        RpcError::internal(format!("server `{server}`: {reason}"))
            .with_data(json!({ "server": server, "kind": "invalid", "reason": reason }))
    }
}

fn cursor_params(cursor: Option<&str>) -> String {
    let mut params = ObjectWriter::new();
    if let Some(cursor) = cursor {
        params.string("cursor", cursor);
    }
    params.finish()
}
