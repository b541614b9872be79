//! Lists that change while the server is checked: is the client told?

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use turnbuckle_ledger::table;
use turnbuckle_protocol::revision::Revision;

use crate::discovery::List;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::received;
use crate::visit::Visit;

/// A list: its member in the result, its method, what identifies an entry, its notification and its capability.
struct Listed {
    member: &'static str,
    method: &'static str,
    key: &'static str,
    notification: &'static str,
    capability: &'static str,
    /// The requirement that asks for the notification; it does not stand in every revision.
    row: &'static str,
}

const LISTS: [Listed; 3] = [
    Listed {
        member: "tools",
        method: "tools/list",
        key: "name",
        notification: "notifications/tools/list_changed",
        capability: "/tools/listChanged",
        row: "tools.list-changed.send",
    },
    Listed {
        member: "prompts",
        method: "prompts/list",
        key: "name",
        notification: "notifications/prompts/list_changed",
        capability: "/prompts/listChanged",
        row: "prompts.list-changed.send",
    },
    Listed {
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
pub(super) async fn told(visit: &Visit) -> Outcome {
    let mut announced_lists = Vec::new();
    for listed in LISTS.iter().filter(|listed| binds(listed, visit)) {
        if visit.capability(listed.capability).await.is_ok() {
            announced_lists.push(listed);
        }
    }
    if announced_lists.is_empty() {
        return Err(Unmet::not_applicable(
            "the server declares no `listChanged`",
        ));
    }
    let discovered = visit.discovered().await?;
    // The conversation of the trials listens for changes from before the first call on.
    let trials = visit.trials().await?;
    let mut seen = Vec::new();
    for listed in announced_lists {
        let before = match listed.member {
            "tools" => &discovered.tools,
            "prompts" => &discovered.prompts,
            _ => &discovered.resources,
        };
        let after = List::read(&trials.session, listed.member, listed.method).await;
        // A list that was not read to its end cannot be compared.
        if !before.whole || !after.whole || keys(before, listed) == keys(&after, listed) {
            continue;
        }
        match announced(visit, listed).await {
            Some(at) => seen.extend(after.entries().chain([at])),
            None => {
                let what = format!(
                    "`{}` changed, and no `{}` came within {:?}",
                    listed.method,
                    listed.notification,
                    visit.options.patience * LONGER
                );
                return Err(Unmet::broken(what, before.entries().chain(after.entries())));
            }
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_applicable(
            "no list whose changes are announced changed during the check",
        )),
        false => Seen::at(seen),
    }
}

fn binds(listed: &Listed, visit: &Visit) -> bool {
    // The requirements have no rows for 2024-10-07; the next revision stands for it.
    let date = visit.revision.max(Revision::V2024_11_05).as_str();
    table::find(listed.row).is_some_and(|row| row.revisions.contains(&date))
}

fn keys(list: &List, listed: &Listed) -> BTreeSet<String> {
    let key = |item: &Value| item[listed.key].as_str().map(str::to_owned);
    list.iter().filter_map(key).collect()
}

/// Waits for the notification much longer than for an answer; returns its entry.
async fn announced(visit: &Visit, listed: &Listed) -> Option<usize> {
    let trials = visit.trials().await.ok()?;
    let until = Instant::now() + visit.options.patience * LONGER;
    loop {
        if let Some(message) = received(&visit.tape, listed.notification).first() {
            return Some(message.at);
        }
        if Instant::now() >= until {
            return None;
        }
        trials.session.listen(STEP).await;
    }
}
