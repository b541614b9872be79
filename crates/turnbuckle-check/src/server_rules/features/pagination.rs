//! Pagination of lists.

use serde_json::{Value, json};

use super::lists::{ALL, ListKind};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::{ListedItems, ServerInventory},
    rule::{Area::Pagination, Rule},
    session::ProbeResponse,
};

pub(crate) const RULES: &[Rule] = &[
    Rule::server("pagination.goes-on", Pagination, &["pagination.operations"])
        .requirement("The cursor of a page returns the next page.")
        .hint("Read `cursor` in the parameters of the list, and return the items after it.")
        .active(|ctx| Box::pin(next_page(ctx))),
    Rule::server(
        "pagination.stable-cursors",
        Pagination,
        &["pagination.server.stable"],
    )
    .requirement("A cursor that is used twice returns the same page.")
    .hint(
        "Encode the position of the page in the cursor, instead of storing the client's position.",
    )
    .active(|ctx| Box::pin(stable_cursors(ctx))),
    Rule::server(
        "pagination.invalid-cursor",
        Pagination,
        &[
            "pagination.server.invalid-code",
            "pagination.server.invalid-graceful",
        ],
    )
    .requirement("The server returns error -32602 for an unknown cursor.")
    .hint("Return error -32602 when a cursor is invalid.")
    .active(|ctx| Box::pin(invalid_cursor(ctx))),
];

async fn next_page(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (kind, list) in lists_with_cursor(ctx).await? {
        if list.page_failure.is_some() {
            // A changed list may have invalidated its cursors.
            let again = kind.read(ctx.session().await?).await?;
            if let Some(NotPassed::Violation {
                observed, entries, ..
            }) = again.page_failure
            {
                let observed = format!("the next page of `{}`: {observed}", kind.method);
                return Err(NotPassed::violation(observed, entries));
            }
        }
        let items = |page: &ProbeResponse| page.value["result"][kind.field].clone();
        let mut pairs = list.pages.windows(2);
        let is_repeated =
            pairs.any(|pair| items(&pair[0]) == items(&pair[1]) && items(&pair[0]) != json!([]));
        if is_repeated {
            let observed = format!(
                "`{}` returns the same page for the cursor of the next one",
                kind.method
            );
            return Err(NotPassed::violation(observed, list.entries()));
        }
        evidence.extend(list.entries());
    }
    Evidence::from_entries(evidence)
}

async fn stable_cursors(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut evidence = Vec::new();
    for (kind, list) in lists_in_pages(ctx).await? {
        let page = &list.pages[0].value["result"];
        let params = json!({ "cursor": page["nextCursor"] });
        let first = session
            .request(kind.method, params.clone())
            .await
            .map_err(NotPassed::into_not_tested)?;
        let other = session
            .request(kind.method, params)
            .await
            .map_err(NotPassed::into_not_tested)?;
        let keys = |result: &Value| -> Option<Vec<Value>> {
            let items = result[kind.field].as_array()?;
            Some(items.iter().map(|item| item[kind.key].clone()).collect())
        };
        let entries = first.entries().chain(other.entries());
        let [first_keys, other_keys] =
            [&first, &other].map(|page| page.value.get("result").and_then(keys));
        if first_keys.is_none() {
            return Err(NotPassed::not_tested(
                "the cursor of the first page is no longer accepted",
            ));
        }
        if first_keys != other_keys {
            let observed = format!("`{}` returns another page for the same cursor", kind.method);
            return Err(NotPassed::violation(observed, entries));
        }
        evidence.extend(entries);
    }
    Evidence::from_entries(evidence)
}

async fn invalid_cursor(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut evidence = Vec::new();
    for (kind, _) in lists_in_pages(ctx).await? {
        let params = json!({ "cursor": "turnbuckle-no-such-cursor" });
        let response = session.request(kind.method, params).await?;
        if let Err(NotPassed::Violation {
            observed, entries, ..
        }) = response.expect_error(&[-32602])
        {
            return Err(NotPassed::violation(
                format!("`{}`: {observed}", kind.method),
                entries,
            ));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

/// Returns the lists with more than one page.
async fn lists_in_pages(ctx: &CheckContext) -> Result<Vec<(ListKind, &ListedItems)>, NotPassed> {
    lists_where(ctx, |list| list.pages.len() > 1).await
}

/// Returns the lists with a cursor, even if the next page could not be read.
async fn lists_with_cursor(ctx: &CheckContext) -> Result<Vec<(ListKind, &ListedItems)>, NotPassed> {
    lists_where(ctx, |list| {
        list.pages.len() > 1 || list.page_failure.is_some()
    })
    .await
}

async fn lists_where(
    ctx: &CheckContext,
    selects: fn(&ListedItems) -> bool,
) -> Result<Vec<(ListKind, &ListedItems)>, NotPassed> {
    let inventory = ctx.inventory().await?;
    let lists = ALL.map(|kind| (kind, items_of(inventory, kind)));
    let paged: Vec<_> = lists
        .into_iter()
        .filter(|(_, list)| selects(list))
        .collect();
    if paged.is_empty() {
        Err(NotPassed::not_applicable("no list has more than one page"))
    } else {
        Ok(paged)
    }
}

/// Returns the items of a list of the inventory.
pub(super) fn items_of(inventory: &ServerInventory, kind: ListKind) -> &ListedItems {
    match kind.method {
        "tools/list" => &inventory.tools,
        "resources/list" => &inventory.resources,
        "prompts/list" => &inventory.prompts,
        _ => &inventory.templates,
    }
}
