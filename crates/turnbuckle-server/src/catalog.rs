//! The catalog: everything a server has registered. It is immutable and replaced as a whole on each change.

pub(crate) mod cache_hint;
pub(crate) mod completion;
mod list_cache;
pub(crate) mod scopes;
pub(crate) mod subscriptions;
pub(crate) mod visibility;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{Principal, RpcError, types::TaskSupport};
use turnbuckle_store::{ListDigest, ServerChange};

use crate::{
    CacheHint, Contents, Context, Prompt, RequestError, Resource, ResourceTemplate, Tool,
    Variables,
    catalog::{
        list_cache::{ListCache, VisibleLists},
        scopes::RequiredScopes,
        visibility::Visibility,
    },
    input::SealingKeys,
    lifecycle::RevisionRules,
    request::{BoxFuture, RequestContext},
    resources::ResourceProvider,
};

/// All registered tools, prompts, resources, templates and resource providers.
#[derive(Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: EntryTable<Tool>,
    pub(crate) prompts: EntryTable<Prompt>,
    pub(crate) resources: EntryTable<Resource>,
    pub(crate) templates: EntryTable<ResourceTemplate>,
    pub(crate) providers: Vec<Arc<dyn ResourceProvider>>,
    /// True if any tool can run as a task.
    pub(crate) supports_tasks: bool,
}

/// Defines the builder methods that tools, prompts, resources and resource templates share. Documentation that differs is
/// passed in.
macro_rules! entry_setters {
    ($entry:ident {
        $(#[$description:meta])+ description,
        $(#[$visible_to:meta])+ visible_to,
        $(#[$scopes:meta])+ scopes,
    }) => {
        impl $entry {
            $(#[$description])+
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// Sets the display name.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: turnbuckle_protocol::types::Icon) -> Self {
                self.definition.icons.push(icon);
                self
            }

            /// Sets the `_meta` of the definition.
            #[must_use]
            pub fn meta(mut self, meta: turnbuckle_protocol::Meta) -> Self {
                self.definition.meta = meta;
                self
            }

            $(#[$visible_to])+
            #[must_use]
            pub fn visible_to(
                mut self,
                predicate: impl Fn(Option<&turnbuckle_protocol::Principal>) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.visibility.intersect(predicate);
                self
            }

            $(#[$scopes])+
            #[must_use]
            pub fn scopes(self, scopes: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
                self.try_scopes(scopes).unwrap_or_else(|error| panic!("{error}"))
            }

            /// Like [`scopes`](Self::scopes), with an error instead of a panic.
            pub fn try_scopes(
                mut self,
                scopes: impl IntoIterator<Item = impl AsRef<str>>,
            ) -> Result<Self, $crate::InvalidScope> {
                self.required_scopes.add(scopes)?;
                Ok(self)
            }
        }
    };
}
pub(crate) use entry_setters;

/// A resource found by URI: registered under it, matched by a template, or owned by a provider.
pub(crate) enum ResolvedResource {
    Resource(Arc<Resource>),
    Match(Arc<ResourceTemplate>, Variables),
    FromProvider(Arc<dyn ResourceProvider>),
}

impl Catalog {
    pub(crate) fn has_resources(&self) -> bool {
        self.resources.is_advertised()
            || self.templates.is_advertised()
            || !self.providers.is_empty()
    }

    /// Returns whether a capability advertised by `before` would disappear.
    pub(crate) fn drops_capability_of(&self, before: &Self) -> bool {
        let lists = |it: &Self| {
            [
                it.tools.advertised,
                it.prompts.advertised,
                it.resources.advertised,
                it.templates.advertised,
                it.supports_tasks,
            ]
        };
        std::iter::zip(lists(self), lists(before)).any(|(now, before)| before && !now)
    }

    /// Keeps the capabilities of `before` advertised: clients know them and may still use them.
    pub(crate) fn keep_capabilities_of(&mut self, before: &Self) {
        self.tools.advertised |= before.tools.advertised;
        self.prompts.advertised |= before.prompts.advertised;
        self.resources.advertised |= before.resources.advertised;
        self.templates.advertised |= before.templates.advertised;
        self.supports_tasks |= before.supports_tasks;
    }

    /// Computes what depends on all tools, before the catalog is served.
    pub(crate) fn finalize(&mut self) {
        let mut tools = self.tools.iter();
        self.supports_tasks = tools.any(|tool| tool.task != TaskSupport::Forbidden);
    }

    /// Returns the digest of the list that changed, or `None` if some callers do not see all of it: a predicate has no
    /// digest. Items of providers are not included; providers publish their changes themselves.
    pub(crate) fn list_digest(&self, change: &ServerChange) -> Option<ListDigest> {
        let mut hash = Sha256::new();
        match change {
            ServerChange::ToolsChanged => self.tools.hash(&mut hash)?,
            ServerChange::PromptsChanged => self.prompts.hash(&mut hash)?,
            ServerChange::ResourcesChanged => {
                self.resources.hash(&mut hash)?;
                self.templates.hash(&mut hash)?;
            }
            _ => return None,
        }
        Some(short_digest(hash))
    }

    /// Returns the resources of `resources/list`, including those of providers.
    pub(crate) fn all_resources(&self) -> EntryTable<Resource> {
        let mut all = self.resources.clone();
        for resource in self
            .providers
            .iter()
            .flat_map(|provider| provider.listed().to_vec())
        {
            if !all.has(resource.key()) {
                all.put(resource);
            }
        }
        all
    }

    pub(crate) fn has_completers(&self) -> bool {
        self.prompts
            .iter()
            .any(|prompt| !prompt.completers.is_empty())
            || self
                .templates
                .iter()
                .any(|template| !template.completers.is_empty())
    }

    /// Finds the resource that a URI names for a caller. Of several matching templates, the one with the most literal
    /// text wins.
    pub(crate) fn find_resource(
        &self,
        uri: &str,
        principal: Option<&Principal>,
    ) -> Option<ResolvedResource> {
        if let Some(resource) = self.resources.get(uri, principal) {
            return Some(ResolvedResource::Resource(resource.clone()));
        }
        if let Some(provider) = self.providers.iter().find(|provider| provider.owns(uri)) {
            return Some(ResolvedResource::FromProvider(provider.clone()));
        }
        let matching = self
            .templates
            .iter()
            .filter(|template| template.visibility.allows(principal))
            .filter_map(|template| Some((template, template.matches(uri)?)));
        let best = matching.max_by_key(|(template, _)| template.template.specificity());
        best.map(|(template, variables)| ResolvedResource::Match(template.clone(), variables))
    }

    /// Returns whether the URI names a resource and the caller may see none that it names.
    pub(crate) fn is_hidden_from(&self, uri: &str, principal: Option<&Principal>) -> bool {
        if self.resources.is_open() && self.templates.is_open() {
            return false;
        }
        // A public template may still read the resource, but must not reveal that it exists.
        if self.resources.has(uri) {
            return self.resources.get(uri, principal).is_none();
        }
        let mut templates = self.templates.iter();
        let is_described = templates.any(|template| template.template.matches(uri).is_some());
        let exists = |resolved: ResolvedResource| resolved.exists(uri);
        is_described && !self.find_resource(uri, principal).is_some_and(exists)
    }

    /// Returns whether the caller has the scopes required to read the URI.
    pub(crate) fn permits(&self, uri: &str, principal: Option<&Principal>) -> bool {
        let resolved = self.find_resource(uri, principal);
        resolved.is_none_or(|resolved| resolved.required_scopes().allows(principal))
    }
}

impl ResolvedResource {
    /// Returns whether the resource exists, as far as that is known without reading it.
    pub(crate) fn exists(&self, uri: &str) -> bool {
        match self {
            Self::Resource(_) | Self::Match(..) => true,
            Self::FromProvider(provider) => provider.has(uri),
        }
    }

    pub(crate) fn cache(&self) -> CacheHint {
        let (hint, visibility) = match self {
            Self::Resource(resource) => (resource.cache, &resource.visibility),
            Self::Match(template, _) => (template.cache, &template.visibility),
            Self::FromProvider(provider) => return provider.cache(),
        };
        // A result that some callers may not see must not be cached for others.
        if visibility.is_open() && self.required_scopes().is_empty() {
            hint
        } else {
            hint.into_private()
        }
    }

    /// The scopes required to read it.
    pub(crate) fn required_scopes(&self) -> &RequiredScopes {
        match self {
            Self::Resource(resource) => &resource.required_scopes,
            Self::Match(template, _) => &template.required_scopes,
            Self::FromProvider(_) => &RequiredScopes::NONE,
        }
    }

    pub(crate) fn mime_type(&self) -> Option<String> {
        match self {
            Self::Resource(resource) => resource.definition.mime_type.clone(),
            Self::Match(template, _) => template.definition.mime_type.clone(),
            Self::FromProvider(_) => None,
        }
    }

    pub(crate) fn read(
        self,
        uri: &str,
        cx: Context,
    ) -> Result<BoxFuture<Result<Contents, RequestError>>, RequestError> {
        match self {
            Self::Resource(resource) => Ok((resource.read)(uri, cx)),
            Self::Match(template, variables) => (template.read)(variables, uri, cx),
            Self::FromProvider(provider) => Ok(provider.read(uri, cx)),
        }
    }
}

/// Returns the first half of a hash.
pub(crate) fn short_digest(hash: Sha256) -> ListDigest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    ListDigest::new(digest)
}

/// An item of a list, with a unique key.
pub(crate) trait CatalogEntry {
    /// The member of the list result that holds the items.
    const MEMBER: &'static str;
    /// The name or URI.
    fn key(&self) -> &str;
    /// The visibility of the item; public by default.
    fn visibility(&self) -> &Visibility {
        &Visibility::OPEN
    }
    /// Writes the item in the format of the peer's revision.
    fn write(&self, rules: &RevisionRules, out: &mut Vec<u8>);
}

/// Number of items up to which comparing all keys costs less than hashing one.
const MAX_COMPARED_ITEMS: usize = 8;

/// Items in registration order.
pub(crate) struct EntryTable<T> {
    all: ListCache<T>,
    positions: HashMap<String, usize>,
    /// The digests of all items, computed when the list changes while the server runs.
    digests: Vec<OnceLock<ListDigest>>,
    advertised: bool,
    /// `None` while every item is public.
    visible_lists: Option<VisibleLists<T>>,
}

/// The page size is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, thiserror::Error)]
#[error("the page size must not be zero")]
#[non_exhaustive]
pub struct InvalidPageSize;

/// A request for one page of a list.
pub(crate) struct PageRequest<'a> {
    rules: &'a RevisionRules,
    principal: Option<&'a Principal>,
    cursor: Option<&'a str>,
    size: Option<usize>,
    keys: &'a SealingKeys,
}

impl<'a> PageRequest<'a> {
    /// Requests the page that starts at `cursor`, for the caller of `call`.
    pub(crate) fn new(call: &'a RequestContext, cursor: Option<&'a str>) -> Self {
        Self {
            rules: call.origin.rules,
            principal: call.origin.principal.as_deref(),
            cursor,
            size: call.server.page_length(),
            keys: call.server.sealing_keys(),
        }
    }
}

impl<T: CatalogEntry> EntryTable<T> {
    /// Adds an item. An item with the same key is replaced at its position.
    pub(crate) fn put(&mut self, item: impl Into<Arc<T>>) {
        let item = item.into();
        if !item.visibility().is_open() {
            self.visible_lists.get_or_insert_default();
        }
        match self.positions.get(item.key()) {
            Some(&position) => {
                self.all.items[position] = item;
                self.digests[position] = OnceLock::new();
            }
            None => {
                let position = self.all.items.len();
                self.positions.insert(item.key().to_owned(), position);
                self.all.items.push(item);
                self.digests.push(OnceLock::new());
            }
        }
        self.advertised = true;
        self.invalidate();
    }

    /// Removes an item. Returns whether it existed.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(position) = self.positions.remove(key) else {
            return false;
        };
        self.all.items.remove(position);
        self.digests.remove(position);
        let later = self
            .positions
            .values_mut()
            .filter(|other| **other > position);
        later.for_each(|other| *other -= 1);
        self.invalidate();
        true
    }

    fn invalidate(&mut self) {
        self.all.invalidate();
        if self.visible_lists.is_some() {
            let open = self.iter().all(|item| item.visibility().is_open());
            self.visible_lists = (!open).then(VisibleLists::default);
        }
    }

    /// Adds the items to a hash, unless some callers do not see all of them.
    fn hash(&self, hash: &mut Sha256) -> Option<()> {
        if !self.is_open() {
            return None;
        }
        hash.update(self.digests.len().to_be_bytes());
        for (item, digest) in self.iter().zip(&self.digests) {
            hash.update(digest.get_or_init(|| item_digest(&**item)).as_bytes());
        }
        Some(())
    }

    /// Returns whether an item with this key exists, visible or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.positions.contains_key(key)
    }

    /// Returns the item with this key, regardless of its visibility.
    pub(crate) fn find(&self, key: &str) -> Option<&Arc<T>> {
        if self.all.items.len() <= MAX_COMPARED_ITEMS {
            return self.iter().find(|item| item.key() == key);
        }
        self.all.items.get(*self.positions.get(key)?)
    }

    /// Returns the item with this key, if the caller may see it.
    pub(crate) fn get(&self, key: &str, principal: Option<&Principal>) -> Option<&Arc<T>> {
        let item = self.find(key)?;
        item.visibility().allows(principal).then_some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.items.iter()
    }

    /// Returns whether every item is public.
    pub(crate) fn is_open(&self) -> bool {
        self.visible_lists.is_none()
    }

    /// Returns whether the list has, or ever had, an item. Its capability stays advertised.
    pub(crate) fn is_advertised(&self) -> bool {
        self.advertised
    }

    /// Returns one page of the list in the format of the peer's revision, without the closing brace.
    pub(crate) fn page(&self, request: &PageRequest<'_>) -> Result<Bytes, RpcError> {
        self.page_of_list(T::MEMBER, request)
    }

    /// Returns one page of a named list. A cursor of one list is invalid for any other.
    pub(crate) fn page_of_list(
        &self,
        list: &str,
        request: &PageRequest<'_>,
    ) -> Result<Bytes, RpcError> {
        let PageRequest { rules, size, .. } = *request;
        let first = match request.cursor {
            Some(cursor) => self.position_after(list, cursor, request.keys)?,
            None => 0,
        };
        let cursor = |last: &T| self.cursor(list, last, request.keys);
        let Some(visible_lists) = &self.visible_lists else {
            return Ok(self.all.page(rules, first, size, cursor));
        };
        let visible_list = visible_lists.for_caller(&self.all.items, request.principal);
        let first = visible_list
            .items
            .partition_point(|item| self.positions[item.key()] < first);
        Ok(visible_list.page(rules, first, size, cursor))
    }

    /// The cursor names the last item sent and its position among all items, visible or not. So the next page is right
    /// for every caller, even if the list has changed.
    fn cursor(&self, list: &str, last: &T, keys: &SealingKeys) -> String {
        let position = (self.positions[last.key()] + 1, last.key());
        keys.seal(
            &serde_json::to_vec(&position).unwrap_or_default(),
            list.as_bytes(),
        )
    }

    fn position_after(
        &self,
        list: &str,
        cursor: &str,
        keys: &SealingKeys,
    ) -> Result<usize, RpcError> {
        let invalid = || RpcError::invalid_params("invalid cursor for this list");
        let position = keys.open(cursor, list.as_bytes()).map_err(|_| invalid())?;
        let (next, key): (usize, String) =
            serde_json::from_slice(&position).map_err(|_| invalid())?;
        Ok(self
            .positions
            .get(&key)
            .map_or(next, |position| position + 1)
            .min(self.all.items.len()))
    }
}

/// Returns the digest of an item as clients of both eras get it.
fn item_digest(item: &impl CatalogEntry) -> ListDigest {
    let mut written = Vec::new();
    for rules in RevisionRules::newest_of_each_era() {
        item.write(rules, &mut written);
    }
    short_digest(Sha256::new().chain_update(&written))
}

impl<T> Clone for EntryTable<T> {
    fn clone(&self) -> Self {
        Self {
            all: self.all.clone(),
            positions: self.positions.clone(),
            digests: self.digests.clone(),
            advertised: self.advertised,
            visible_lists: self.visible_lists.clone(),
        }
    }
}

impl<T> Default for EntryTable<T> {
    fn default() -> Self {
        Self {
            all: ListCache::default(),
            positions: HashMap::new(),
            digests: Vec::new(),
            advertised: false,
            visible_lists: None,
        }
    }
}
