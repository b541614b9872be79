//! What a server offers, as an immutable table that is replaced as a whole when something changes.

mod listing;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use turnbuckle_protocol::{Principal, RpcError, types::TaskSupport};

use crate::{
    CacheHint, Contents, Context, Prompt, RequestError, Resource, ResourceTemplate, Tool,
    Variables, context::Call, exchange::BoxFuture, input::Keys, lifecycle::Rules, scopes::Needs,
    source::Source, visibility::Visibility,
};
use listing::{Listing, Views};

/// Everything that is registered.
#[derive(Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Table<Tool>,
    pub(crate) prompts: Table<Prompt>,
    pub(crate) resources: Table<Resource>,
    pub(crate) templates: Table<ResourceTemplate>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
    /// Whether any tool can be called as a task.
    pub(crate) offers_tasks: bool,
}

/// A resource that was asked for, at its own address or described by a template.
pub(crate) enum Found {
    Resource(Arc<Resource>),
    Match(Arc<ResourceTemplate>, Variables),
    Kept(Arc<dyn Source>),
}

impl Catalog {
    pub(crate) fn has_resources(&self) -> bool {
        self.resources.is_offered() || self.templates.is_offered() || !self.sources.is_empty()
    }

    /// Says whether something that was offered before would look as if it had never been.
    pub(crate) fn forgets(&self, before: &Self) -> bool {
        let lists = |it: &Self| {
            [
                it.tools.offered,
                it.prompts.offered,
                it.resources.offered,
                it.templates.offered,
                it.offers_tasks,
            ]
        };
        std::iter::zip(lists(self), lists(before)).any(|(now, before)| before && !now)
    }

    /// Keeps in mind what was offered before: clients were told of it, and may still ask.
    pub(crate) fn remember(&mut self, before: &Self) {
        self.tools.offered |= before.tools.offered;
        self.prompts.offered |= before.prompts.offered;
        self.resources.offered |= before.resources.offered;
        self.templates.offered |= before.templates.offered;
        self.offers_tasks |= before.offers_tasks;
    }

    /// Works out what calls want to know of all tools, before the catalog is served.
    pub(crate) fn settle(&mut self) {
        let mut tools = self.tools.iter();
        self.offers_tasks = tools.any(|tool| tool.task != TaskSupport::Forbidden);
    }

    /// What `resources/list` shows, with what the sources keep.
    pub(crate) fn all_resources(&self) -> Table<Resource> {
        let mut all = self.resources.clone();
        for resource in self
            .sources
            .iter()
            .flat_map(|source| source.listed().to_vec())
        {
            if !all.has(resource.key()) {
                all.put(resource);
            }
        }
        all
    }

    pub(crate) fn completes(&self) -> bool {
        self.prompts
            .iter()
            .any(|prompt| !prompt.completers.is_empty())
            || self
                .templates
                .iter()
                .any(|template| !template.completers.is_empty())
    }

    /// Finds what a URI names for a caller; of several templates the one with the most literal text.
    pub(crate) fn find_resource(&self, uri: &str, principal: Option<&Principal>) -> Option<Found> {
        if let Some(resource) = self.resources.get(uri, principal) {
            return Some(Found::Resource(resource.clone()));
        }
        if let Some(source) = self.sources.iter().find(|source| source.owns(uri)) {
            return Some(Found::Kept(source.clone()));
        }
        let matching = self
            .templates
            .iter()
            .filter(|template| template.visibility.allows(principal))
            .filter_map(|template| Some((template, template.matches(uri)?)));
        let best = matching.max_by_key(|(template, _)| template.template.specificity());
        best.map(|(template, variables)| Found::Match(template.clone(), variables))
    }

    /// Says whether a URI names something, and nothing that this caller may see.
    pub(crate) fn hides(&self, uri: &str, principal: Option<&Principal>) -> bool {
        if self.resources.is_open() && self.templates.is_open() {
            return false;
        }
        // A template for everyone may be a way to read it; it does not tell everyone that it is there.
        if self.resources.has(uri) {
            return self.resources.get(uri, principal).is_none();
        }
        let mut templates = self.templates.iter();
        let is_named = templates.any(|template| template.template.matches(uri).is_some());
        let is_there = |found: Found| found.is_there(uri);
        is_named && !self.find_resource(uri, principal).is_some_and(is_there)
    }

    /// Says whether a caller has the scopes that reading a URI takes.
    pub(crate) fn permits(&self, uri: &str, principal: Option<&Principal>) -> bool {
        let found = self.find_resource(uri, principal);
        found.is_none_or(|found| found.needs().allow(principal))
    }
}

impl Found {
    /// Says whether it is there, as far as that can be said without reading it.
    pub(crate) fn is_there(&self, uri: &str) -> bool {
        match self {
            Self::Resource(_) | Self::Match(..) => true,
            Self::Kept(source) => source.has(uri),
        }
    }

    pub(crate) fn cache(&self) -> CacheHint {
        let (hint, visibility) = match self {
            Self::Resource(resource) => (resource.cache, &resource.visibility),
            Self::Match(template, _) => (template.cache, &template.visibility),
            Self::Kept(source) => return source.cache(),
        };
        // What not everyone may see or read, nobody may keep for others.
        if visibility.is_open() && self.needs().is_nothing() {
            hint
        } else {
            hint.for_one()
        }
    }

    /// The scopes that reading it takes.
    pub(crate) fn needs(&self) -> &Needs {
        match self {
            Self::Resource(resource) => &resource.needs,
            Self::Match(template, _) => &template.needs,
            Self::Kept(_) => &Needs::NOTHING,
        }
    }

    pub(crate) fn mime_type(&self) -> Option<String> {
        match self {
            Self::Resource(resource) => resource.definition.mime_type.clone(),
            Self::Match(template, _) => template.definition.mime_type.clone(),
            Self::Kept(_) => None,
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
            Self::Kept(source) => Ok(source.read(uri, cx)),
        }
    }
}

/// Something that is listed under a unique key.
pub(crate) trait Listed {
    /// The member of the list result that holds the items.
    const MEMBER: &'static str;
    /// The name or URI.
    fn key(&self) -> &str;
    /// Who may see it: everyone, unless it says otherwise.
    fn visibility(&self) -> &Visibility {
        &Visibility::OPEN
    }
    /// Writes the item as the peer's revision reads it.
    fn write(&self, rules: &Rules, out: &mut Vec<u8>);
}

/// Items in the order of their registration.
pub(crate) struct Table<T> {
    all: Listing<T>,
    places: HashMap<String, usize>,
    offered: bool,
    /// Absent while everyone may see everything.
    views: Option<Views<T>>,
}

/// Which part of a list is asked for, and by whom.
pub(crate) struct Page<'a> {
    rules: &'a Rules,
    principal: Option<&'a Principal>,
    cursor: Option<&'a str>,
    size: Option<usize>,
    keys: &'a Keys,
}

impl<'a> Page<'a> {
    /// The part that begins at a cursor, for whoever makes a call.
    pub(crate) fn of(call: &'a Call, cursor: Option<&'a str>) -> Self {
        Self {
            rules: call.caller.rules,
            principal: call.caller.principal.as_deref(),
            cursor,
            size: call.server.page_length(),
            keys: call.server.keys(),
        }
    }
}

impl<T: Listed> Table<T> {
    /// Adds an item, or replaces the one with the same key in its place.
    pub(crate) fn put(&mut self, item: impl Into<Arc<T>>) {
        let item = item.into();
        if !item.visibility().is_open() {
            self.views.get_or_insert_default();
        }
        match self.places.get(item.key()) {
            Some(&place) => self.all.items[place] = item,
            None => {
                let place = self.all.items.len();
                self.places.insert(item.key().to_owned(), place);
                self.all.items.push(item);
            }
        }
        self.offered = true;
        self.changed();
    }

    /// Takes an item out; says whether there was one.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(place) = self.places.remove(key) else {
            return false;
        };
        self.all.items.remove(place);
        let later = self.places.values_mut().filter(|other| **other > place);
        later.for_each(|other| *other -= 1);
        self.changed();
        true
    }

    fn changed(&mut self) {
        self.all.changed();
        if self.views.is_some() {
            let open = self.iter().all(|item| item.visibility().is_open());
            self.views = (!open).then(Views::default);
        }
    }

    /// Says whether there is an item with this key, seen or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// The item with this key, whoever may see it.
    pub(crate) fn named(&self, key: &str) -> Option<&Arc<T>> {
        self.all.items.get(*self.places.get(key)?)
    }

    /// The item with this key, if there is one that the caller may see.
    pub(crate) fn get(&self, key: &str, principal: Option<&Principal>) -> Option<&Arc<T>> {
        let item = self.named(key)?;
        item.visibility().allows(principal).then_some(item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.items.iter()
    }

    /// Says whether everyone may see everything.
    pub(crate) fn is_open(&self) -> bool {
        self.views.is_none()
    }

    /// Says whether something is on the list, or was: clients may still ask for it then.
    pub(crate) fn is_offered(&self) -> bool {
        self.offered
    }

    /// One page of the list as the peer's revision reads it, without the closing brace.
    pub(crate) fn page(&self, asked: &Page<'_>) -> Result<Bytes, RpcError> {
        self.page_of(T::MEMBER, asked)
    }

    /// One page of one of several lists of this kind; a cursor of one is good for no other.
    pub(crate) fn page_of(&self, list: &str, asked: &Page<'_>) -> Result<Bytes, RpcError> {
        let Page { rules, size, .. } = *asked;
        let first = match asked.cursor {
            Some(cursor) => self.place_after(list, cursor, asked.keys)?,
            None => 0,
        };
        let cursor = |last: &T| self.cursor(list, last, asked.keys);
        let Some(views) = &self.views else {
            return Ok(self.all.page(rules, first, size, cursor));
        };
        let view = views.of(&self.all.items, asked.principal);
        let first = view
            .items
            .partition_point(|item| self.places[item.key()] < first);
        Ok(view.page(rules, first, size, cursor))
    }

    /// A cursor names the last item sent, so that the next page fits even if the list has changed meanwhile, and to
    /// every caller: it counts places among all items, seen or not.
    fn cursor(&self, list: &str, last: &T, keys: &Keys) -> String {
        let position = (self.places[last.key()] + 1, last.key());
        keys.seal(
            &serde_json::to_vec(&position).unwrap_or_default(),
            list.as_bytes(),
        )
    }

    fn place_after(&self, list: &str, cursor: &str, keys: &Keys) -> Result<usize, RpcError> {
        let invalid = || RpcError::invalid_params("the cursor is not one that this list gave out");
        let position = keys.open(cursor, list.as_bytes()).map_err(|_| invalid())?;
        let (next, key): (usize, String) =
            serde_json::from_slice(&position).map_err(|_| invalid())?;
        Ok(self
            .places
            .get(&key)
            .map_or(next, |place| place + 1)
            .min(self.all.items.len()))
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            all: self.all.clone(),
            places: self.places.clone(),
            offered: self.offered,
            views: self.views.clone(),
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            all: Listing::default(),
            places: HashMap::new(),
            offered: false,
            views: None,
        }
    }
}
