//! What a server offers, as an immutable table that is replaced as a whole when something changes.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use turnbuckle_protocol::{Revision, RpcError};

use crate::{
    CacheHint, Contents, Context, Prompt, RequestError, Resource, ResourceTemplate, Tool,
    Variables, exchange::BoxFuture, input::Keys, lifecycle::Rules,
};

/// Everything that is registered.
#[derive(Clone, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Table<Tool>,
    pub(crate) prompts: Table<Prompt>,
    pub(crate) resources: Table<Resource>,
    pub(crate) templates: Table<ResourceTemplate>,
}

/// A resource that was asked for, at its own address or described by a template.
pub(crate) enum Found {
    Resource(Arc<Resource>),
    Match(Arc<ResourceTemplate>, Variables),
}

impl Catalog {
    pub(crate) fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
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

    /// Finds what a URI names; of several templates the one with the most literal text.
    pub(crate) fn find_resource(&self, uri: &str) -> Option<Found> {
        if let Some(resource) = self.resources.get(uri) {
            return Some(Found::Resource(resource.clone()));
        }
        let matching = self
            .templates
            .iter()
            .filter_map(|template| Some((template, template.matches(uri)?)));
        let best = matching.max_by_key(|(template, _)| template.template.specificity());
        best.map(|(template, variables)| Found::Match(template.clone(), variables))
    }
}

impl Found {
    pub(crate) fn cache(&self) -> CacheHint {
        match self {
            Self::Resource(resource) => resource.cache,
            Self::Match(template, _) => template.cache,
        }
    }

    pub(crate) fn mime_type(&self) -> Option<String> {
        match self {
            Self::Resource(resource) => resource.definition.mime_type.clone(),
            Self::Match(template, _) => template.definition.mime_type.clone(),
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
        }
    }
}

/// Something that is listed under a unique key.
pub(crate) trait Listed {
    /// The member of the list result that holds the items.
    const MEMBER: &'static str;
    /// The name or URI.
    fn key(&self) -> &str;
    /// Writes the item as the peer's revision reads it.
    fn write(&self, rules: &Rules, out: &mut Vec<u8>);
}

/// Items in the order of their registration.
pub(crate) struct Table<T> {
    items: Vec<Arc<T>>,
    places: HashMap<String, usize>,
    /// The list as bytes, once per revision.
    whole: [OnceLock<Bytes>; Revision::ALL.len()],
}

impl<T: Listed> Table<T> {
    /// Adds an item, or replaces the one with the same key in its place.
    pub(crate) fn put(&mut self, item: impl Into<Arc<T>>) {
        let item = item.into();
        match self.places.get(item.key()) {
            Some(&place) => self.items[place] = item,
            None => {
                self.places.insert(item.key().to_owned(), self.items.len());
                self.items.push(item);
            }
        }
        self.whole = Default::default();
    }

    /// Takes an item out; says whether there was one.
    pub(crate) fn remove(&mut self, key: &str) -> bool {
        let Some(place) = self.places.remove(key) else {
            return false;
        };
        self.items.remove(place);
        let later = self.places.values_mut().filter(|other| **other > place);
        later.for_each(|other| *other -= 1);
        self.whole = Default::default();
        true
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.items.get(*self.places.get(key)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.items.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// One page of the list as the peer's revision reads it, without the closing brace.
    pub(crate) fn page(
        &self,
        rules: &Rules,
        cursor: Option<&str>,
        size: Option<usize>,
        keys: &Keys,
    ) -> Result<Bytes, RpcError> {
        let first = match cursor {
            Some(cursor) => self.place_after(cursor, keys)?,
            None => 0,
        };
        if first == 0 && size.is_none_or(|size| self.items.len() <= size) {
            return Ok(self.whole[rules.index()]
                .get_or_init(|| self.write(rules, &self.items).into())
                .clone());
        }
        let last = size.map_or(self.items.len(), |size| {
            (first + size).min(self.items.len())
        });
        let mut page = self.write(rules, &self.items[first..last]);
        if last < self.items.len() {
            page.extend_from_slice(br#","nextCursor":""#);
            page.extend_from_slice(self.cursor(last, keys).as_bytes());
            page.push(b'"');
        }
        Ok(page.into())
    }

    fn write(&self, rules: &Rules, items: &[Arc<T>]) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(T::MEMBER.as_bytes());
        out.extend_from_slice(b"\":[");
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            item.write(rules, &mut out);
        }
        out.push(b']');
        out
    }

    /// A cursor names the last item sent, so that the next page fits even if the list has changed meanwhile.
    fn cursor(&self, next: usize, keys: &Keys) -> String {
        let position = (next, self.items[next - 1].key());
        keys.seal(
            &serde_json::to_vec(&position).unwrap_or_default(),
            T::MEMBER.as_bytes(),
        )
    }

    fn place_after(&self, cursor: &str, keys: &Keys) -> Result<usize, RpcError> {
        let invalid = || RpcError::invalid_params("the cursor is not one that this list gave out");
        let position = keys
            .open(cursor, T::MEMBER.as_bytes())
            .map_err(|_| invalid())?;
        let (next, key): (usize, String) =
            serde_json::from_slice(&position).map_err(|_| invalid())?;
        Ok(self
            .places
            .get(&key)
            .map_or(next, |place| place + 1)
            .min(self.items.len()))
    }
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Self {
            items: self.items.clone(),
            places: self.places.clone(),
            whole: self.whole.clone(),
        }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            places: HashMap::new(),
            whole: Default::default(),
        }
    }
}
