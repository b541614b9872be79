//! Lists in pages.

use serde_json::{Value, json};

use super::lists::{ALL, Kind};
use crate::discovery::{Discovered, List};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area::Pagination, Rule};
use crate::session::Answer;
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[
    Rule::server("pagination.goes-on", Pagination, &["pagination.operations"])
        .says("The cursor of a page leads to the next one.")
        .cure("Read `cursor` in the parameters of the list, and answer with what comes after it.")
        .ask(|visit| Box::pin(goes_on(visit))),
    Rule::server(
        "pagination.stable-cursors",
        Pagination,
        &["pagination.server.stable"],
    )
    .says("A cursor that is used twice gives the same page.")
    .cure("Make a cursor say where the page begins, instead of remembering where the client is.")
    .ask(|visit| Box::pin(stable_cursors(visit))),
    Rule::server(
        "pagination.invalid-cursor",
        Pagination,
        &[
            "pagination.server.invalid-code",
            "pagination.server.invalid-graceful",
        ],
    )
    .says("A cursor that the server never gave is refused with the error -32602.")
    .cure("Answer with the error -32602 when a cursor cannot be read.")
    .ask(|visit| Box::pin(invalid_cursor(visit))),
];

async fn goes_on(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for (kind, list) in goes_on_to_more(visit).await? {
        if list.broken_off.is_some() {
            // A list that has changed meanwhile may have made its cursors useless.
            let again = kind.read(visit.session().await?).await?;
            if let Some(Unmet::Broken { what, entries }) = again.broken_off {
                let what = format!("the next page of `{}`: {what}", kind.method);
                return Err(Unmet::broken(what, entries));
            }
        }
        let items = |page: &Answer| page.value["result"][kind.field].clone();
        let mut pairs = list.pages.windows(2);
        let stuck =
            pairs.any(|pair| items(&pair[0]) == items(&pair[1]) && items(&pair[0]) != json!([]));
        if stuck {
            let what = format!(
                "`{}` gives the same page again when asked for the next one",
                kind.method
            );
            return Err(Unmet::broken(what, list.entries()));
        }
        seen.extend(list.entries());
    }
    Seen::at(seen)
}

async fn stable_cursors(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let mut seen = Vec::new();
    for (kind, list) in in_pages(visit).await? {
        let page = &list.pages[0].value["result"];
        let params = json!({ "cursor": page["nextCursor"] });
        let one = session
            .ask(kind.method, params.clone())
            .await
            .map_err(Unmet::aside)?;
        let other = session
            .ask(kind.method, params)
            .await
            .map_err(Unmet::aside)?;
        let keys = |result: &Value| -> Option<Vec<Value>> {
            let items = result[kind.field].as_array()?;
            Some(items.iter().map(|item| item[kind.key].clone()).collect())
        };
        let entries = one.entries().chain(other.entries());
        let [first, again] = [&one, &other].map(|page| page.value.get("result").and_then(keys));
        if first.is_none() {
            return Err(Unmet::not_tested(
                "the cursor of the first page is no longer accepted",
            ));
        }
        if first != again {
            let what = format!("`{}` gives another page for the same cursor", kind.method);
            return Err(Unmet::broken(what, entries));
        }
        seen.extend(entries);
    }
    Seen::at(seen)
}

async fn invalid_cursor(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let mut seen = Vec::new();
    for (kind, _) in in_pages(visit).await? {
        let params = json!({ "cursor": "turnbuckle-no-such-cursor" });
        let answer = session.ask(kind.method, params).await?;
        if let Err(Unmet::Broken { what, entries }) = answer.expect_error(&[-32602]) {
            return Err(Unmet::broken(format!("`{}`: {what}", kind.method), entries));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen)
}

/// Returns the lists of which more than one page was read.
async fn in_pages(visit: &Visit) -> Result<Vec<(Kind, &List)>, Unmet> {
    such(visit, |list| list.pages.len() > 1).await
}

/// Returns the lists of which there is more than one page.
async fn goes_on_to_more(visit: &Visit) -> Result<Vec<(Kind, &List)>, Unmet> {
    such(visit, |list| {
        list.pages.len() > 1 || list.broken_off.is_some()
    })
    .await
}

async fn such(visit: &Visit, which: fn(&List) -> bool) -> Result<Vec<(Kind, &List)>, Unmet> {
    let discovered = visit.discovered().await?;
    let lists = ALL.map(|kind| (kind, of(discovered, kind)));
    let paged: Vec<_> = lists.into_iter().filter(|(_, list)| which(list)).collect();
    match paged.is_empty() {
        true => Err(Unmet::not_applicable("no list comes in more than one page")),
        false => Ok(paged),
    }
}

/// Returns a list of what was discovered.
pub(super) fn of(discovered: &Discovered, kind: Kind) -> &List {
    match kind.method {
        "tools/list" => &discovered.tools,
        "resources/list" => &discovered.resources,
        "prompts/list" => &discovered.prompts,
        _ => &discovered.templates,
    }
}
