//! Lists in pages.

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
        .requirement("The cursor of a page leads to the next one.")
        .fix("Read `cursor` in the parameters of the list, and answer with what comes after it.")
        .active(|ctx| Box::pin(goes_on(ctx))),
    Rule::server(
        "pagination.stable-cursors",
        Pagination,
        &["pagination.server.stable"],
    )
    .requirement("A cursor that is used twice gives the same page.")
    .fix("Make a cursor say where the page begins, instead of remembering where the client is.")
    .active(|ctx| Box::pin(stable_cursors(ctx))),
    Rule::server(
        "pagination.invalid-cursor",
        Pagination,
        &[
            "pagination.server.invalid-code",
            "pagination.server.invalid-graceful",
        ],
    )
    .requirement("A cursor that the server never gave is refused with the error -32602.")
    .fix("Answer with the error -32602 when a cursor cannot be read.")
    .active(|ctx| Box::pin(invalid_cursor(ctx))),
];

async fn goes_on(ctx: &CheckContext) -> Outcome {
    let mut evidence = Vec::new();
    for (kind, list) in goes_on_to_more(ctx).await? {
        if list.page_failure.is_some() {
            // A list that has changed meanwhile may have made its cursors useless.
            let again = kind.read(ctx.session().await?).await?;
            if let Some(NotPassed::Violation { observed, entries }) = again.page_failure {
                let observed = format!("the next page of `{}`: {observed}", kind.method);
                return Err(NotPassed::violation(observed, entries));
            }
        }
        let items = |page: &ProbeResponse| page.value["result"][kind.field].clone();
        let mut pairs = list.pages.windows(2);
        let stuck =
            pairs.any(|pair| items(&pair[0]) == items(&pair[1]) && items(&pair[0]) != json!([]));
        if stuck {
            let observed = format!(
                "`{}` gives the same page again when asked for the next one",
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
    for (kind, list) in in_pages(ctx).await? {
        let page = &list.pages[0].value["result"];
        let params = json!({ "cursor": page["nextCursor"] });
        let one = session
            .request(kind.method, params.clone())
            .await
            .map_err(NotPassed::as_not_tested)?;
        let other = session
            .request(kind.method, params)
            .await
            .map_err(NotPassed::as_not_tested)?;
        let keys = |result: &Value| -> Option<Vec<Value>> {
            let items = result[kind.field].as_array()?;
            Some(items.iter().map(|item| item[kind.key].clone()).collect())
        };
        let entries = one.entries().chain(other.entries());
        let [first, again] = [&one, &other].map(|page| page.value.get("result").and_then(keys));
        if first.is_none() {
            return Err(NotPassed::not_tested(
                "the cursor of the first page is no longer accepted",
            ));
        }
        if first != again {
            let observed = format!("`{}` gives another page for the same cursor", kind.method);
            return Err(NotPassed::violation(observed, entries));
        }
        evidence.extend(entries);
    }
    Evidence::from_entries(evidence)
}

async fn invalid_cursor(ctx: &CheckContext) -> Outcome {
    let session = ctx.session().await?;
    let mut evidence = Vec::new();
    for (kind, _) in in_pages(ctx).await? {
        let params = json!({ "cursor": "turnbuckle-no-such-cursor" });
        let response = session.request(kind.method, params).await?;
        if let Err(NotPassed::Violation { observed, entries }) = response.expect_error(&[-32602]) {
            return Err(NotPassed::violation(
                format!("`{}`: {observed}", kind.method),
                entries,
            ));
        }
        evidence.extend(response.entries());
    }
    Evidence::from_entries(evidence)
}

/// Returns the lists of which more than one page was read.
async fn in_pages(ctx: &CheckContext) -> Result<Vec<(ListKind, &ListedItems)>, NotPassed> {
    such(ctx, |list| list.pages.len() > 1).await
}

/// Returns the lists of which there is more than one page.
async fn goes_on_to_more(ctx: &CheckContext) -> Result<Vec<(ListKind, &ListedItems)>, NotPassed> {
    such(ctx, |list| {
        list.pages.len() > 1 || list.page_failure.is_some()
    })
    .await
}

async fn such(
    ctx: &CheckContext,
    which: fn(&ListedItems) -> bool,
) -> Result<Vec<(ListKind, &ListedItems)>, NotPassed> {
    let inventory = ctx.inventory().await?;
    let lists = ALL.map(|kind| (kind, items_of(inventory, kind)));
    let paged: Vec<_> = lists.into_iter().filter(|(_, list)| which(list)).collect();
    if paged.is_empty() {
        Err(NotPassed::not_applicable(
            "no list comes in more than one page",
        ))
    } else {
        Ok(paged)
    }
}

/// Returns a list of what was discovered.
pub(super) fn items_of(inventory: &ServerInventory, kind: ListKind) -> &ListedItems {
    match kind.method {
        "tools/list" => &inventory.tools,
        "resources/list" => &inventory.resources,
        "prompts/list" => &inventory.prompts,
        _ => &inventory.templates,
    }
}
