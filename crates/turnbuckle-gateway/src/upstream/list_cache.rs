//! The lists of an upstream server, kept in memory until they change.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::value::RawValue;
use tokio::{sync::Mutex, time::Instant};
use turnbuckle_protocol::{RpcError, json, jsonrpc::RawObject};

use crate::{convert::ListKind, errors, raw_json::ObjectWriter, upstream::connection::Connection};

/// Lifetime of a list of a server that does not announce changes.
const UNANNOUNCED_LIFETIME: Duration = Duration::from_secs(30);

const MAX_PAGES: usize = 1_000;
const MAX_ITEMS: usize = 100_000;
/// Maximum total size of a list.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// An item of a list, in the revision of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListItem {
    /// The name, URI or URI template.
    pub(crate) name: String,
    /// The definition, as received.
    pub(crate) json: String,
}

/// The lists of one connection.
#[derive(Default)]
pub(crate) struct ListCache {
    lists: [Mutex<Option<CachedList>>; 4],
    /// Incremented when the list changes, so that a list that was requested before is not kept.
    versions: [AtomicU64; 4],
}

struct CachedList {
    items: Arc<Vec<ListItem>>,
    version: u64,
    expires: Option<Instant>,
}

impl ListCache {
    /// Forgets a list, because it has changed.
    pub(crate) fn invalidate(&self, kind: ListKind) {
        self.versions[kind as usize].fetch_add(1, Ordering::AcqRel);
    }

    fn version(&self, kind: ListKind) -> u64 {
        self.versions[kind as usize].load(Ordering::Acquire)
    }
}

impl Connection {
    /// Returns all items of a list.
    pub(crate) async fn list(&self, kind: ListKind) -> Result<Arc<Vec<ListItem>>, RpcError> {
        let mut cached = self.lists().lists[kind as usize].lock().await;
        let version = self.lists().version(kind);
        if let Some(list) = &*cached
            && list.version == version
            && list.expires.is_none_or(|expires| Instant::now() < expires)
        {
            return Ok(Arc::clone(&list.items));
        }
        let items = Arc::new(self.fetch_list(kind).await?);
        let lifetime = (!self.announces(kind)).then_some(UNANNOUNCED_LIFETIME);
        *cached = Some(CachedList {
            items: Arc::clone(&items),
            version,
            expires: lifetime.map(|lifetime| Instant::now() + lifetime),
        });
        Ok(items)
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

    /// Returns whether the server announces changes of the list.
    fn announces(&self, kind: ListKind) -> bool {
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

    async fn fetch_list(&self, kind: ListKind) -> Result<Vec<ListItem>, RpcError> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        if !self.has(kind) {
            return Ok(items);
        }
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = cursor_params(cursor.as_deref());
            let page = self
                .request(kind.method(), params)
                .await
                .map_err(|error| errors::call_failure(self.server.name(), error))?;
            let next = self.read_page(kind, page.json(), &mut items)?;
            bytes += page.json().len();
            if items.len() > MAX_ITEMS || bytes > MAX_BYTES {
                return Err(self.too_long(kind));
            }
            match next {
                // A repeated cursor would never end.
                Some(next) if cursor.as_deref() != Some(&*next) => cursor = Some(next),
                _ => return Ok(items),
            }
        }
        Err(self.too_long(kind))
    }

    /// Adds the items of a page, and returns its next cursor. Items without a name are left out.
    fn read_page(
        &self,
        kind: ListKind,
        page: &str,
        items: &mut Vec<ListItem>,
    ) -> Result<Option<String>, RpcError> {
        let invalid = |error: &RpcError| errors::invalid_result(self.server.name(), error);
        let page = RawObject::parse(page).map_err(|error| invalid(&error))?;
        let list = page.get(kind.items_member()).unwrap_or("[]");
        let list: Vec<&RawValue> = json::from_str(list)
            .map_err(RpcError::from)
            .map_err(|error| invalid(&error))?;
        for item in list {
            let name = RawObject::parse(item.get()).and_then(|item| {
                let name = item.string(kind.name_member())?;
                Ok(name.map(String::from))
            });
            match name {
                Ok(Some(name)) => items.push(ListItem {
                    name,
                    json: item.get().to_owned(),
                }),
                _ => tracing::warn!(
                    server = self.server.name(),
                    list = kind.items_member(),
                    "an item without a name is left out"
                ),
            }
        }
        let cursor = page.string("nextCursor").map_err(|error| invalid(&error))?;
        Ok(cursor.map(String::from))
    }

    fn too_long(&self, kind: ListKind) -> RpcError {
        let list = kind.items_member();
        let error = RpcError::internal(format!("the list of {list} is too long"));
        errors::invalid_result(self.server.name(), &error)
    }
}

fn cursor_params(cursor: Option<&str>) -> String {
    let mut params = ObjectWriter::new();
    if let Some(cursor) = cursor {
        params.string("cursor", cursor);
    }
    params.finish()
}
