//! Pages of lists, with malformed items left out.

use serde::de::DeserializeOwned;
use serde_json::Value;
use turnbuckle_protocol::{
    VersionedPayload,
    json::{self, JsonError},
    jsonrpc::Truncated,
    types::{
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        Prompt, Resource, ResourceTemplate, Tool,
    },
};

use crate::{
    cache::CacheHints,
    client::{Client, ReceivedResult},
    error::CallError,
    inbound::observers::{Anomaly, ListItemKind},
};

/// One page of a list.
pub(crate) trait ListPage: CacheHints + VersionedPayload {
    /// The type of an item.
    type Item: DeserializeOwned;

    /// The kind of the items.
    const KIND: ListItemKind;

    /// The member of the result with the items.
    const MEMBER: &'static str;
}

macro_rules! list_pages {
    ($($page:ty { $item:ty, $kind:ident, $member:literal })*) => {$(
        impl ListPage for $page {
            type Item = $item;
            const KIND: ListItemKind = ListItemKind::$kind;
            const MEMBER: &'static str = $member;
        }
    )*};
}

list_pages! {
    ListToolsResult { Tool, Tool, "tools" }
    ListResourcesResult { Resource, Resource, "resources" }
    ListResourceTemplatesResult { ResourceTemplate, ResourceTemplate, "resourceTemplates" }
    ListPromptsResult { Prompt, Prompt, "prompts" }
}

/// Parses a page. Malformed items are left out and reported, so that one of them does not hide the others; the second
/// value is whether the page is whole.
pub(crate) fn read_page<R: ListPage>(
    client: &Client,
    method: &'static str,
    received: &ReceivedResult,
) -> Result<(R, bool), CallError> {
    let error = match received.read(method) {
        Ok(page) => return Ok((page, true)),
        Err(error) => error,
    };
    let Some((mut page, malformed)) = without_malformed_items::<R>(received.result.as_str()) else {
        return Err(error);
    };
    page.upgrade_from(received.rules.revision);
    for MalformedItem { name, error } in malformed {
        let router = &client.inner.router;
        router.report_anomaly(Anomaly::InvalidListItem {
            kind: R::KIND,
            name,
            error: error.to_string(),
        });
    }
    Ok((page, false))
}

struct MalformedItem {
    name: String,
    error: JsonError,
}

/// Returns the page without its malformed items, or `None` if it is also malformed elsewhere.
fn without_malformed_items<R: ListPage>(json: &str) -> Option<(R, Vec<MalformedItem>)> {
    let mut result: Value = serde_json::from_str(json).ok()?;
    let items = result.get_mut(R::MEMBER)?.as_array_mut()?;
    let mut malformed = Vec::new();
    let mut index = 0;
    items.retain(|item| {
        let read = json::from_value::<R::Item>(item);
        let is_valid = read.is_ok();
        if let Err(error) = read {
            let name = item_name(item).unwrap_or_else(|| format!("{}[{index}]", R::MEMBER));
            malformed.push(MalformedItem { name, error });
        }
        index += 1;
        is_valid
    });
    let page = json::from_value(&result).ok()?;
    Some((page, malformed))
}

/// Returns the name of an item, or its URI.
fn item_name(item: &Value) -> Option<String> {
    let texts = ["name", "uri", "uriTemplate"].map(|member| item.get(member)?.as_str());
    let name = texts.into_iter().flatten().find(|text| !text.is_empty())?;
    Some(Truncated(name).to_string())
}
