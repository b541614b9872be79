//! Checks that the lists of tools, resources and prompts share.

use std::collections::BTreeSet;

use serde_json::json;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::ListedItems,
    session::{ProbeResponse, Session},
};

/// A kind of list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListKind {
    /// The capability that the list belongs to.
    pub(super) capability: &'static str,
    /// The method that returns the list.
    pub(super) method: &'static str,
    /// The member of the result with the items.
    pub(super) field: &'static str,
    /// The member that identifies an item.
    pub(super) key: &'static str,
}

pub(super) const TOOLS: ListKind = ListKind {
    capability: "tools",
    method: "tools/list",
    field: "tools",
    key: "name",
};

pub(super) const RESOURCES: ListKind = ListKind {
    capability: "resources",
    method: "resources/list",
    field: "resources",
    key: "uri",
};

pub(super) const TEMPLATES: ListKind = ListKind {
    capability: "resources",
    method: "resources/templates/list",
    field: "resourceTemplates",
    key: "uriTemplate",
};

pub(super) const PROMPTS: ListKind = ListKind {
    capability: "prompts",
    method: "prompts/list",
    field: "prompts",
    key: "name",
};

/// All kinds of lists.
pub(super) const ALL: [ListKind; 4] = [TOOLS, RESOURCES, TEMPLATES, PROMPTS];

impl ListKind {
    /// Reads the list, all pages.
    pub(super) async fn read(self, session: &Session) -> Result<ListedItems, NotPassed> {
        let list = ListedItems::read(session, self.field, self.method).await;
        list.items()?;
        Ok(list)
    }

    /// Returns the keys of the items.
    pub(super) fn keys(self, list: &ListedItems) -> impl Iterator<Item = &str> {
        list.iter().filter_map(move |item| item[self.key].as_str())
    }
}

/// Checks that a server that declares the capability returns the list.
pub(super) async fn check_returned(ctx: &CheckContext, kind: ListKind) -> Outcome {
    ctx.capability(&format!("/{}", kind.capability)).await?;
    let response = ctx.session().await?.request(kind.method, json!({})).await?;
    response.result()?;
    response.evidence()
}

/// Checks that a server with items declares the capability.
pub(super) async fn check_declared(ctx: &CheckContext, kind: ListKind) -> Outcome {
    let session = ctx.session().await?;
    let opening = session.opening.iter();
    let opening: Vec<_> = opening.flat_map(ProbeResponse::entries).collect();
    let capabilities = session.capabilities();
    if !capabilities.is_object() {
        return Err(NotPassed::not_tested("the server returned no capabilities"));
    }
    if capabilities.get(kind.capability).is_some() {
        return Evidence::from_entries(opening);
    }
    // Another rule checks the response to an unknown method.
    let response = session
        .request(kind.method, json!({}))
        .await
        .map_err(NotPassed::into_not_tested)?;
    let count = response.value["result"][kind.field]
        .as_array()
        .map_or(0, Vec::len);
    match count {
        0 => Err(NotPassed::not_applicable(format!(
            "the server lists no {}",
            kind.field
        ))),
        count => Err(NotPassed::violation(
            format!(
                "`{}` returns {count} items, but `{}` is not declared",
                kind.method, kind.capability
            ),
            opening.into_iter().chain(response.entries()),
        )),
    }
}

/// Checks that the list is the same on every connection, independent of earlier requests.
pub(super) async fn check_same_for_all(ctx: &CheckContext, kind: ListKind) -> Outcome {
    ctx.capability(&format!("/{}", kind.capability)).await?;
    let used_session = ctx.session().await?;
    let before = kind.read(used_session).await?;
    let new_session = ctx.new_session().await?;
    let new = kind.read(&new_session).await?;
    // A list may change over time: compare only if it was the same before and after.
    let after = kind.read(used_session).await?;
    let [keys_before, new_keys, keys_after] =
        [&before, &new, &after].map(|list| kind.keys(list).collect::<BTreeSet<_>>());
    let entries = new.entries().chain(after.entries());
    if keys_before != keys_after {
        return Err(NotPassed::not_tested("the list changed during the check"));
    }
    let Some(difference) = keys_before.symmetric_difference(&new_keys).next() else {
        return Evidence::from_entries(entries);
    };
    let connection = if new_keys.contains(difference) {
        "on a new connection only"
    } else {
        "on a connection with earlier requests only"
    };
    Err(NotPassed::violation(
        format!("`{difference}` is listed {connection}"),
        entries,
    ))
}
