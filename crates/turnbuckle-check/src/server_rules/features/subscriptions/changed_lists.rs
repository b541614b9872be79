//! Lists that change while the server is checked: is the client told?

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_protocol::revision::Revision;
use turnbuckle_spec_coverage::table;

use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
        transcript_query::received,
    },
    probe::ListedItems,
};

/// A list: its member in the result, its method, what identifies an entry, its notification and its capability.
struct ListSpec {
    member: &'static str,
    method: &'static str,
    key: &'static str,
    notification: &'static str,
    capability: &'static str,
    /// The requirement that asks for the notification; it does not stand in every revision.
    row: &'static str,
}

const LISTS: [ListSpec; 3] = [
    ListSpec {
        member: "tools",
        method: "tools/list",
        key: "name",
        notification: "notifications/tools/list_changed",
        capability: "/tools/listChanged",
        row: "tools.list-changed.send",
    },
    ListSpec {
        member: "prompts",
        method: "prompts/list",
        key: "name",
        notification: "notifications/prompts/list_changed",
        capability: "/prompts/listChanged",
        row: "prompts.list-changed.send",
    },
    ListSpec {
        member: "resources",
        method: "resources/list",
        key: "uri",
        notification: "notifications/resources/list_changed",
        capability: "/resources/listChanged",
        row: "resources.list-changed.send",
    },
];

/// How many times longer than for an answer a notification is waited for: a server may collect changes for a while.
const LONGER: u32 = 6;

/// How long to listen before looking again whether a notification came.
const STEP: Duration = Duration::from_millis(50);

/// Compares each list before and after the tools were called; a list that differs has to have been announced.
pub(super) async fn notified(ctx: &CheckContext) -> Outcome {
    let mut announced_lists = Vec::new();
    for listed in LISTS.iter().filter(|listed| binds(listed, ctx)) {
        if ctx.capability(listed.capability).await.is_ok() {
            announced_lists.push(listed);
        }
    }
    if announced_lists.is_empty() {
        return Err(NotPassed::not_applicable(
            "the server declares no `listChanged`",
        ));
    }
    let inventory = ctx.inventory().await?;
    // The conversation of the trials listens for changes from before the first call on.
    let tool_runs = ctx.tool_runs().await?;
    let mut evidence = Vec::new();
    for listed in announced_lists {
        let before = match listed.member {
            "tools" => &inventory.tools,
            "prompts" => &inventory.prompts,
            _ => &inventory.resources,
        };
        let after = ListedItems::read(&tool_runs.session, listed.member, listed.method).await;
        // A list that was not read to its end cannot be compared.
        if !before.is_complete || !after.is_complete || keys(before, listed) == keys(&after, listed)
        {
            continue;
        }
        match announced(ctx, listed).await {
            Some(at) => evidence.extend(after.entries().chain([at])),
            None => {
                let observed = format!(
                    "`{}` changed, and no `{}` came within {:?}",
                    listed.method,
                    listed.notification,
                    ctx.options.response_timeout * LONGER
                );
                return Err(NotPassed::violation(
                    observed,
                    before.entries().chain(after.entries()),
                ));
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "no list whose changes are announced changed during the check",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

fn binds(listed: &ListSpec, ctx: &CheckContext) -> bool {
    // The requirements have no rows for 2024-10-07; the next revision stands for it.
    let date = ctx.revision.max(Revision::V2024_11_05).as_str();
    table::find(listed.row).is_some_and(|row| row.revisions.contains(&date))
}

fn keys(list: &ListedItems, listed: &ListSpec) -> BTreeSet<String> {
    let key = |item: &Value| item[listed.key].as_str().map(str::to_owned);
    list.iter().filter_map(key).collect()
}

/// Waits for the notification much longer than for an answer; returns its entry.
async fn announced(ctx: &CheckContext, listed: &ListSpec) -> Option<usize> {
    let tool_runs = ctx.tool_runs().await.ok()?;
    let until = Instant::now() + ctx.options.response_timeout * LONGER;
    loop {
        if let Some(message) = received(&ctx.transcript, listed.notification).first() {
            return Some(message.at);
        }
        if Instant::now() >= until {
            return None;
        }
        tool_runs.session.listen(STEP).await;
    }
}
