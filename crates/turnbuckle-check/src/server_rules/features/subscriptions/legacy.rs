//! Subscriptions before 2026-07-28: single resources, and list changes for all clients.

use serde_json::json;

use super::{CHANGES, UPDATED};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::tool_runs::ToolRun,
};

/// The maximum number of resources that are tried to find one with subscriptions.
const MAX_RESOURCES_TRIED: usize = 5;

pub(super) async fn subscribe(ctx: &CheckContext) -> Outcome {
    ctx.capability("/resources/subscribe").await?;
    let resources = &ctx.inventory().await?.resources;
    let uris = resources.iter().filter_map(|it| it["uri"].as_str());
    let session = ctx.new_session().await?;
    let mut failure = NotPassed::not_tested("the server lists no resources");
    // A server need not support subscriptions to every resource.
    for uri in uris.take(MAX_RESOURCES_TRIED) {
        let request = |method| session.request(method, json!({ "uri": uri }));
        let subscribed = request("resources/subscribe")
            .await
            .map_err(NotPassed::into_not_tested)?;
        if let Err(why) = subscribed.result() {
            failure = why;
            continue;
        }
        let ended = request("resources/unsubscribe")
            .await
            .map_err(NotPassed::into_not_tested)?;
        ended.result()?;
        return Evidence::from_entries(subscribed.entries().chain(ended.entries()));
    }
    Err(failure)
}

pub(super) async fn only_subscribed(ctx: &CheckContext) -> Outcome {
    ctx.capability("/resources/subscribe").await?;
    let tool_runs = ctx.tool_runs().await?;
    let subscribed = tool_runs.changes.subscribed.iter();
    let uris: Vec<_> = subscribed
        .filter(|(_, response)| {
            response
                .as_ref()
                .is_ok_and(|response| response.result().is_ok())
        })
        .map(|(uri, _)| uri.as_str())
        .collect();
    for run in &tool_runs.runs {
        for (at, uri) in updates(ctx, run) {
            if !is_within(&uri, &uris) {
                let observed = format!("an update of {uri} without a subscription");
                return Err(NotPassed::violation(observed, [at]));
            }
        }
    }
    let runs_with_updates = tool_runs.that_sent(ctx, UPDATED);
    let Some(run) = runs_with_updates.first() else {
        return Err(tool_runs.none("causes an update of a subscribed resource"));
    };
    let updated = updates(ctx, run);
    let unsubscribed = uris.iter().filter(|uri| {
        updated
            .iter()
            .any(|(_, updated)| is_within(updated, &[uri]))
    });
    let unsubscribed: Vec<_> = unsubscribed.copied().collect();
    for uri in &unsubscribed {
        let params = json!({ "uri": uri });
        let response = tool_runs
            .session
            .request("resources/unsubscribe", params)
            .await
            .map_err(NotPassed::into_not_tested)?;
        response.result().map_err(NotPassed::into_not_tested)?;
    }
    let mut again = ToolRun::run(ctx, &tool_runs.session, &run.call, json!({})).await;
    tool_runs.session.listen(ctx.pace.quiet_period()).await;
    again.span.end = ctx.transcript.len();
    match updates(ctx, &again)
        .iter()
        .find(|(_, uri)| is_within(uri, &unsubscribed))
    {
        Some((at, uri)) => {
            let observed = format!("an update of {uri} after `resources/unsubscribe`");
            Err(NotPassed::violation(observed, again.entries().chain([*at])))
        }
        None => {
            // The absence of notifications proves nothing if the call failed.
            again.response()?;
            Evidence::from_entries(updated.iter().map(|(at, _)| *at).chain(again.entries()))
        }
    }
}

pub(super) async fn changes_declared(ctx: &CheckContext) -> Outcome {
    let tool_runs = ctx.tool_runs().await?;
    let mut evidence = Vec::new();
    for (method, _, pointer) in CHANGES {
        for run in tool_runs.that_sent(ctx, method) {
            let at = run.notifications(ctx, method)[0].0;
            if ctx.capability(pointer).await.is_err() {
                let name = pointer.trim_start_matches('/').replace('/', ".");
                let observed = format!("`{method}`, but `{name}` is not declared");
                return Err(NotPassed::violation(observed, [at]));
            }
            evidence.push(at);
        }
    }
    if evidence.is_empty() {
        let mut declared = false;
        for (_, _, pointer) in CHANGES {
            declared |= ctx.capability(pointer).await.is_ok();
        }
        return Err(if declared {
            tool_runs.none("changes a list")
        } else {
            NotPassed::not_applicable("the server neither declares nor sends list changes")
        });
    }
    Evidence::from_entries(evidence)
}

/// Returns the URIs of the updates that a run received.
fn updates(ctx: &CheckContext, run: &ToolRun) -> Vec<(usize, String)> {
    let updates = run.notifications(ctx, UPDATED).into_iter();
    updates
        .filter_map(|(at, message)| Some((at, message["params"]["uri"].as_str()?.to_owned())))
        .collect()
}

/// Returns whether a URI is one of these, or below one.
fn is_within(uri: &str, uris: &[&str]) -> bool {
    uris.iter().any(|parent| uri.starts_with(parent))
}
