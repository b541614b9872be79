//! Notifications about lists that change during the check.

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

/// A list: its member in the result, its method, the key of an item, its notification and its capability.
struct ListSpec {
    member: &'static str,
    method: &'static str,
    key: &'static str,
    notification: &'static str,
    capability: &'static str,
    /// The requirement of the notification, which is not part of every revision.
    requirement: &'static str,
}

const LISTS: [ListSpec; 3] = [
    ListSpec {
        member: "tools",
        method: "tools/list",
        key: "name",
        notification: "notifications/tools/list_changed",
        capability: "/tools/listChanged",
        requirement: "tools.list-changed.send",
    },
    ListSpec {
        member: "prompts",
        method: "prompts/list",
        key: "name",
        notification: "notifications/prompts/list_changed",
        capability: "/prompts/listChanged",
        requirement: "prompts.list-changed.send",
    },
    ListSpec {
        member: "resources",
        method: "resources/list",
        key: "uri",
        notification: "notifications/resources/list_changed",
        capability: "/resources/listChanged",
        requirement: "resources.list-changed.send",
    },
];

/// Multiplies the response timeout for notifications: a server may collect changes for a while.
const TIMEOUT_FACTOR: u32 = 6;

/// The time between two looks at the transcript.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Compares each list before and after the tool runs; a changed list requires a notification.
pub(super) async fn notified(ctx: &CheckContext) -> Outcome {
    let mut declared_lists = Vec::new();
    for list in LISTS.iter().filter(|list| applies(list, ctx)) {
        if ctx.capability(list.capability).await.is_ok() {
            declared_lists.push(list);
        }
    }
    if declared_lists.is_empty() {
        return Err(NotPassed::not_applicable(
            "the server declares no `listChanged`",
        ));
    }
    let inventory = ctx.inventory().await?;
    // The session of the tool runs listens for changes before the first call.
    let tool_runs = ctx.tool_runs().await?;
    let mut evidence = Vec::new();
    for list in declared_lists {
        let before = match list.member {
            "tools" => &inventory.tools,
            "prompts" => &inventory.prompts,
            _ => &inventory.resources,
        };
        let after = ListedItems::read(&tool_runs.session, list.member, list.method).await;
        // A list that was not read to its end cannot be compared.
        if !before.is_complete || !after.is_complete || keys(before, list) == keys(&after, list) {
            continue;
        }
        match wait_for_notification(ctx, list).await {
            Some(at) => evidence.extend(after.entries().chain([at])),
            None => {
                let observed = format!(
                    "`{}` changed, but no `{}` arrived within {:?}",
                    list.method,
                    list.notification,
                    ctx.pace.response_timeout() * TIMEOUT_FACTOR
                );
                let entries = before.entries().chain(after.entries());
                return Err(
                    NotPassed::violation(observed, entries).for_requirement(list.requirement)
                );
            }
        }
    }
    if evidence.is_empty() {
        Err(NotPassed::not_applicable(
            "no list with `listChanged` changed during the check",
        ))
    } else {
        Evidence::from_entries(evidence)
    }
}

fn applies(list: &ListSpec, ctx: &CheckContext) -> bool {
    // The requirements table does not list 2024-10-07; the next revision replaces it.
    let date = ctx.revision.max(Revision::V2024_11_05).as_str();
    table::find(list.requirement).is_some_and(|row| row.revisions.contains(&date))
}

fn keys(items: &ListedItems, list: &ListSpec) -> BTreeSet<String> {
    let key = |item: &Value| item[list.key].as_str().map(str::to_owned);
    items.iter().filter_map(key).collect()
}

/// Waits for the notification much longer than for a response; returns its entry.
async fn wait_for_notification(ctx: &CheckContext, list: &ListSpec) -> Option<usize> {
    let tool_runs = ctx.tool_runs().await.ok()?;
    let until = Instant::now() + ctx.pace.response_timeout() * TIMEOUT_FACTOR;
    loop {
        if let Some(message) = received(&ctx.transcript, list.notification).first() {
            return Some(message.at);
        }
        if Instant::now() >= until {
            return None;
        }
        tool_runs.session.listen(POLL_INTERVAL).await;
    }
}
