//! What the lists of tools, resources and prompts have in common.

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

/// A list that a server may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListKind {
    /// The capability that says so.
    pub(super) capability: &'static str,
    /// How it is asked for.
    pub(super) method: &'static str,
    /// Where the items are in a result.
    pub(super) field: &'static str,
    /// What tells one item from another.
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

/// All of them.
pub(super) const ALL: [ListKind; 4] = [TOOLS, RESOURCES, TEMPLATES, PROMPTS];

impl ListKind {
    /// Reads it.
    pub(super) async fn read(self, session: &Session) -> Result<ListedItems, NotPassed> {
        let list = ListedItems::read(session, self.field, self.method).await;
        list.items()?;
        Ok(list)
    }

    /// Returns what tells its items apart.
    pub(super) fn keys(self, list: &ListedItems) -> impl Iterator<Item = &str> {
        list.iter().filter_map(move |item| item[self.key].as_str())
    }
}

/// Whoever declares it answers with it.
pub(super) async fn is_answered(ctx: &CheckContext, kind: ListKind) -> Outcome {
    ctx.capability(&format!("/{}", kind.capability)).await?;
    let response = ctx.session().await?.request(kind.method, json!({})).await?;
    response.result()?;
    response.evidence()
}

/// Whoever has something on it declares it.
pub(super) async fn is_declared(ctx: &CheckContext, kind: ListKind) -> Outcome {
    let session = ctx.session().await?;
    let opening = session.opening.iter();
    let opening: Vec<_> = opening.flat_map(ProbeResponse::entries).collect();
    let capabilities = session.capabilities();
    if !capabilities.is_object() {
        return Err(NotPassed::not_tested(
            "the server does not say what it declares",
        ));
    }
    if capabilities.get(kind.capability).is_some() {
        return Evidence::from_entries(opening);
    }
    // That an unknown method gets no answer is for another rule to say.
    let response = session
        .request(kind.method, json!({}))
        .await
        .map_err(NotPassed::as_not_tested)?;
    let count = response.value["result"][kind.field]
        .as_array()
        .map_or(0, Vec::len);
    match count {
        0 => Err(NotPassed::not_applicable(format!(
            "the server has no {}",
            kind.field
        ))),
        count => Err(NotPassed::violation(
            format!(
                "`{}` gives {count} of them, but `{}` is not declared",
                kind.method, kind.capability
            ),
            opening.into_iter().chain(response.entries()),
        )),
    }
}

/// It is the same for every connection, whatever was asked before.
pub(super) async fn is_same_for_all(ctx: &CheckContext, kind: ListKind) -> Outcome {
    ctx.capability(&format!("/{}", kind.capability)).await?;
    let used = ctx.session().await?;
    let before = kind.read(used).await?;
    let fresh = ctx.new_session().await?;
    let anew = kind.read(&fresh).await?;
    // A list may change over time: only what is there before and after, or neither, tells something.
    let after = kind.read(used).await?;
    let [before, new, later] =
        [&before, &anew, &after].map(|list| kind.keys(list).collect::<BTreeSet<_>>());
    let entries = anew.entries().chain(after.entries());
    if before != later {
        return Err(NotPassed::not_tested("the list changed meanwhile"));
    }
    let Some(odd) = before.symmetric_difference(&new).next() else {
        return Evidence::from_entries(entries);
    };
    let place = if new.contains(odd) {
        "on a new connection only"
    } else {
        "on a connection with earlier requests only"
    };
    Err(NotPassed::violation(
        format!("`{odd}` is listed {place}"),
        entries,
    ))
}
