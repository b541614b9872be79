//! The resources and resource templates of all upstream servers.
//!
//! A list of resources can be long, so it is not requested as a whole: a page of the gateway has the first pages of some
//! servers, in the order of the configuration, until one of them has more. The cursor is that server's, sealed.

use std::sync::Arc;

use bytes::Bytes;
use turnbuckle_protocol::{Revision, RpcError};
use turnbuckle_server::relay::{RelayedRequest, RelayedResult};

use crate::{
    catalog::{
        lists::{CURSOR_LIFETIME, ClientHint, ServerPart, cursor, unknown_cursor},
        server_states::RESOURCE_URI,
        uris::{own_template, own_uri, parse_own_uri},
    },
    convert::ListKind,
    errors,
    gateway::{GatewayState, SERVER_TIMEOUT},
    hops::Hops,
    lifecycle::RevisionPair,
    lock,
    raw_json::{edit, quote},
    upstream::{
        UpstreamServer,
        list_cache::{ListItem, ListPage},
    },
};

/// Maximum number of pages of one server, against cursors without end.
const MAX_PAGES: u32 = 1_000;
/// Maximum length of a server's cursor.
const MAX_CURSOR_BYTES: usize = 64 * 1024;

/// The next page of a server.
struct NextPage {
    server: Arc<str>,
    cursor: String,
    /// The number of pages before it.
    number: u32,
}

impl NextPage {
    fn seal(&self, kind: ListKind, request: &RelayedRequest) -> String {
        let Self {
            server,
            cursor,
            number,
        } = self;
        let text = serde_json::json!([&**server, number, cursor]).to_string();
        request.seal(text.as_bytes(), kind.method(), CURSOR_LIFETIME)
    }

    fn open(kind: ListKind, sealed: &str, request: &RelayedRequest) -> Option<Self> {
        let text = request.open(sealed, kind.method())?;
        let (server, number, cursor): (String, _, _) = serde_json::from_slice(&text).ok()?;
        Some(Self {
            server: server.into(),
            cursor,
            number,
        })
    }
}

/// A page that is being written.
struct PageWriter<'a> {
    gateway: &'a GatewayState,
    kind: ListKind,
    revision: Revision,
    items: String,
}

impl PageWriter<'_> {
    fn item(&mut self, item: &str) {
        if !self.items.is_empty() {
            self.items.push(',');
        }
        self.items.push_str(item);
    }

    /// Adds the items of a server that clients may see, with the URIs that they see.
    fn items(&mut self, server: &UpstreamServer, items: &[ListItem], upstream: Revision) {
        let pair = RevisionPair {
            downstream: self.revision,
            upstream,
        };
        let kind = self.kind;
        for item in items.iter().filter(|item| server.permits(kind, item)) {
            let shown = self.gateway.shown_uri(self.kind, server, &item.name);
            let converted = self.kind.item(&item.json, pair).and_then(|json| {
                if shown == item.name {
                    return Ok(json);
                }
                edit(&json, &[], &[(self.kind.name_member(), quote(&shown))])
            });
            match converted {
                Ok(json) => self.item(&json),
                Err(error) => tracing::warn!(
                    server = server.name(),
                    item = item.name,
                    error = %error.message,
                    "an invalid item is left out"
                ),
            }
        }
    }
}

impl GatewayState {
    /// Returns a page of the resources or templates of all servers.
    pub(crate) async fn list_resources(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Result<RelayedResult, RpcError> {
        let params = request.parsed_params();
        let continued = match cursor(&params)? {
            Some(cursor) => {
                let next = NextPage::open(kind, &cursor, request);
                Some(next.ok_or_else(unknown_cursor)?)
            }
            None => None,
        };
        let mut page = PageWriter {
            gateway: self,
            kind,
            revision: request.revision(),
            items: String::new(),
        };
        let mut hint = ClientHint::unlimited();
        let next = match continued {
            Some(requested) => {
                hint.add_uncached();
                let server = self.server_named(&requested.server);
                let server = server.ok_or_else(unknown_cursor)?;
                let next = self
                    .next_page(&server, requested, request, &mut page)
                    .await?;
                match next {
                    Some(next) => Some(next),
                    None => {
                        self.first_pages(Some(&server), request, &mut page, &mut hint)
                            .await?
                    }
                }
            }
            None => {
                if kind == ListKind::Resources && self.servers().len() > 1 {
                    page.item(&Self::states_resource());
                }
                self.first_pages(None, request, &mut page, &mut hint)
                    .await?
            }
        };
        let next = next.map(|next| next.seal(kind, request));
        let mut head = format!("{{\"{}\":[{}]", kind.items_member(), page.items);
        head.push_str(&self.list_members(request.revision()));
        Ok(self.list_result(Bytes::from(head), next.as_deref(), hint, request.revision()))
    }

    /// Adds the first pages of the servers after `previous`, until one has more.
    async fn first_pages(
        self: &Arc<Self>,
        previous: Option<&Arc<UpstreamServer>>,
        request: &RelayedRequest,
        page: &mut PageWriter<'_>,
        hint: &mut ClientHint,
    ) -> Result<Option<NextPage>, RpcError> {
        let parts = self.known_parts(page.kind, request).await;
        let start = previous.map_or(0, |previous| {
            let position = parts
                .iter()
                .position(|(server, _)| Arc::ptr_eq(server, previous));
            position.map_or(parts.len(), |position| position + 1)
        });
        let is_single = parts.len() == 1;
        for (server, part) in parts.into_iter().skip(start) {
            let (current, is_up) = match part {
                ServerPart::Current(current) => {
                    hint.add(&current);
                    (current, true)
                }
                ServerPart::Last(last) => {
                    hint.add_uncached();
                    (last, false)
                }
                ServerPart::Failed(error) if is_single => return Err(error),
                ServerPart::Down | ServerPart::Failed(_) => {
                    hint.add_uncached();
                    continue;
                }
            };
            page.items(&server, &current.list.items, current.list.revision);
            let next = next_page_of(&server, current.next_cursor, 1).filter(|_| is_up);
            if next.is_some() {
                return Ok(next);
            }
        }
        Ok(None)
    }

    /// Adds a later page of a server. If it cannot be had, the list goes on with the next server.
    async fn next_page(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        requested: NextPage,
        request: &RelayedRequest,
        page: &mut PageWriter<'_>,
    ) -> Result<Option<NextPage>, RpcError> {
        let fetch = async {
            let params = request.parsed_params();
            let hops = Hops::of_request(&params, &self.id)?;
            let connection = self.pool.get(server, request, None).await?;
            connection
                .page(page.kind, Some(&requested.cursor), Some(&hops))
                .await
        };
        let timeout = |_| Err(errors::unreachable(server.name(), "timeout"));
        let fetched = tokio::time::timeout(SERVER_TIMEOUT, fetch).await;
        let ListPage {
            items,
            next_cursor,
            revision,
            ..
        } = match fetched.unwrap_or_else(timeout) {
            Ok(fetched) => fetched,
            Err(error) if self.servers().len() == 1 => return Err(error),
            Err(error) => {
                tracing::warn!(server = server.name(), error = %error.message, "a page is left out");
                return Ok(None);
            }
        };
        self.add_uris(server, page.kind, &items, false);
        page.items(server, &items, revision);
        let is_repeated = next_cursor.as_ref() == Some(&requested.cursor);
        let next_cursor = next_cursor.filter(|_| !is_repeated);
        Ok(next_page_of(server, next_cursor, requested.number + 1))
    }

    /// Returns the first page of every server, and remembers their URIs.
    async fn known_parts(
        self: &Arc<Self>,
        kind: ListKind,
        request: &RelayedRequest,
    ) -> Vec<(Arc<UpstreamServer>, ServerPart)> {
        let parts = self.parts(kind, request).await;
        for (server, part) in &parts {
            if let ServerPart::Current(current) = part {
                let list = &current.list;
                self.add_uris(server, kind, &list.items, list.is_complete);
            }
        }
        parts
    }

    /// Remembers the URIs of a page of a server.
    fn add_uris(
        &self,
        server: &UpstreamServer,
        kind: ListKind,
        items: &[ListItem],
        is_complete: bool,
    ) {
        let uris = items.iter().map(|item| &*item.name);
        let name = &server.settings.name;
        let has_new_collision = {
            let mut table = lock(self.catalog.uris(kind));
            if is_complete {
                table.replace(name, uris)
            } else {
                table.add(name, uris)
            }
        };
        if has_new_collision {
            self.catalog.states_changed();
        }
    }

    /// Returns the URI, or URI template, under which clients know one of a server.
    pub(crate) fn shown_uri(&self, kind: ListKind, server: &UpstreamServer, uri: &str) -> String {
        let servers = self.servers();
        if servers.len() == 1 {
            return uri.to_owned();
        }
        let names_server = || {
            let (name, _) = parse_own_uri(uri)?;
            self.server_named(&name)
        };
        let is_of_earlier = || {
            let table = lock(self.catalog.uris(kind));
            let earlier = servers
                .iter()
                .take_while(|other| other.name() != server.name());
            let holders = table.holders(uri);
            holders.len() > 1 && {
                let mut earlier = earlier.map(|other| &other.settings.name);
                earlier.any(|earlier| holders.contains(earlier))
            }
        };
        if uri != RESOURCE_URI && names_server().is_none() && !is_of_earlier() {
            return uri.to_owned();
        }
        self.catalog.note_renamed_uri();
        match kind {
            ListKind::Templates => own_template(server.name(), uri),
            _ => own_uri(server.name(), uri),
        }
    }

    /// Finds the server of a resource: the one that the URI names; else the first one that lists it; else the first one
    /// with a template for it; else the only one with resources of its scheme.
    pub(crate) async fn find_resource(
        self: &Arc<Self>,
        uri: &str,
        request: &RelayedRequest,
    ) -> Result<(Arc<UpstreamServer>, String), ResourceNotFound> {
        if let Some((name, original)) = parse_own_uri(uri)
            && let Some(server) = self.server_named(&name)
        {
            return Ok((server, original));
        }
        if let Some(server) = self.only_server() {
            return Ok((Arc::clone(&server), uri.to_owned()));
        }
        self.load_uris(request).await;
        let servers = self.servers();
        let permits =
            |server: &Arc<UpstreamServer>| server.policy.permits(ListKind::Resources, uri);
        let found = {
            let resources = lock(&self.catalog.resources);
            let holders = resources.holders(uri);
            let mut listed = servers
                .iter()
                .filter(|server| holders.contains(&server.settings.name));
            listed.next().cloned()
        };
        let by_template = || {
            let templates = lock(&self.catalog.templates);
            let mut matching = servers
                .iter()
                .filter(|server| permits(server) && templates.matches_template(server.name(), uri));
            matching.next().cloned()
        };
        if let Some(server) = found.or_else(by_template) {
            return Ok((server, uri.to_owned()));
        }
        let candidates = self.servers_of_scheme(uri);
        match &*candidates {
            [server] => Ok((Arc::clone(server), uri.to_owned())),
            [] => Err(ResourceNotFound {
                candidates: self.servers_with_resources(),
            }),
            _ => Err(ResourceNotFound { candidates }),
        }
    }

    /// Finds the server of a URI template, as clients see it.
    pub(crate) async fn find_template(
        self: &Arc<Self>,
        template: &str,
        request: &RelayedRequest,
    ) -> Option<(Arc<UpstreamServer>, String)> {
        if let Some((name, original)) = parse_own_uri(template)
            && let Some(server) = self.server_named(&name)
        {
            return Some((server, original));
        }
        if let Some(server) = self.only_server() {
            return Some((Arc::clone(&server), template.to_owned()));
        }
        self.load_uris(request).await;
        let holder = {
            let templates = lock(&self.catalog.templates);
            let holders = templates.holders(template);
            let servers = self.servers();
            let mut holding = servers
                .iter()
                .filter(|server| holders.contains(&server.settings.name));
            holding.next().cloned()
        };
        match holder {
            Some(server) => Some((server, template.to_owned())),
            // A reference can also be the URI of a resource.
            None => self.find_resource(template, request).await.ok(),
        }
    }

    /// Requests the lists of resources and templates, unless they are known.
    pub(super) async fn load_uris(self: &Arc<Self>, request: &RelayedRequest) {
        let version = self.catalog.uris_version();
        if self.catalog.has_loaded_uris(version) {
            return;
        }
        let resources = self.known_parts(ListKind::Resources, request).await;
        let templates = self.known_parts(ListKind::Templates, request).await;
        let mut parts = resources.iter().chain(&templates);
        if !parts.any(|(_, part)| matches!(part, ServerPart::Failed(_))) {
            self.catalog.set_loaded_uris(version);
        }
    }

    fn servers_of_scheme(&self, uri: &str) -> Vec<Arc<UpstreamServer>> {
        let Some(scheme) = super::uris::scheme(uri) else {
            return Vec::new();
        };
        let (resources, templates) = (lock(&self.catalog.resources), lock(&self.catalog.templates));
        let has_scheme = |server: &&Arc<UpstreamServer>| {
            let name = server.name();
            resources.has_scheme(name, &scheme) || templates.has_scheme(name, &scheme)
        };
        self.servers().iter().filter(has_scheme).cloned().collect()
    }

    fn servers_with_resources(&self) -> Vec<Arc<UpstreamServer>> {
        let has_resources = |server: &&Arc<UpstreamServer>| {
            let info = server.info.load();
            info.as_ref()
                .is_some_and(|info| info.capabilities.resources.is_some())
        };
        self.servers()
            .iter()
            .filter(has_resources)
            .cloned()
            .collect()
    }
}

/// A URI without a server. The candidates can be named in the URI.
pub(crate) struct ResourceNotFound {
    pub(crate) candidates: Vec<Arc<UpstreamServer>>,
}

fn next_page_of(server: &UpstreamServer, cursor: Option<String>, number: u32) -> Option<NextPage> {
    let cursor = cursor?;
    if number >= MAX_PAGES || cursor.len() > MAX_CURSOR_BYTES {
        tracing::warn!(
            server = server.name(),
            "a list has too many pages, or too long cursors"
        );
        return None;
    }
    Some(NextPage {
        server: Arc::clone(&server.settings.name),
        cursor,
        number,
    })
}
