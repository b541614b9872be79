//! Subscriptions to single resources, and lists that change for everybody.

use serde_json::json;

use super::{CHANGES, UPDATED};
use crate::{
    engine::{
        check_context::CheckContext,
        outcome::{Evidence, NotPassed, Outcome},
    },
    probe::tool_runs::ToolRun,
};

/// How many resources are looked at to find one that can be subscribed to.
const TRIED: usize = 5;

pub(super) async fn subscribe(ctx: &CheckContext) -> Outcome {
    ctx.capability("/resources/subscribe").await?;
    let resources = &ctx.inventory().await?.resources;
    let uris = resources.iter().filter_map(|it| it["uri"].as_str());
    let session = ctx.new_session().await?;
    let mut refused = NotPassed::not_tested("the server lists no resources");
    // Nothing says that every resource can be subscribed to.
    for uri in uris.take(TRIED) {
        let ask = |method| session.request(method, json!({ "uri": uri }));
        let subscribed = ask("resources/subscribe")
            .await
            .map_err(NotPassed::as_not_tested)?;
        if let Err(why) = subscribed.result() {
            refused = why;
            continue;
        }
        let ended = ask("resources/unsubscribe")
            .await
            .map_err(NotPassed::as_not_tested)?;
        ended.result()?;
        return Evidence::from_entries(subscribed.entries().chain(ended.entries()));
    }
    Err(refused)
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
                let observed = format!("news of {uri}, which nobody has subscribed to");
                return Err(NotPassed::violation(observed, [at]));
            }
        }
    }
    let relevant_headers = tool_runs.that_sent(ctx, UPDATED);
    let Some(relevant_headers) = relevant_headers.first() else {
        return Err(tool_runs.none("tells of new content of a resource that is subscribed to"));
    };
    let told = updates(ctx, relevant_headers);
    let unsubscribed = uris
        .iter()
        .filter(|uri| told.iter().any(|(_, told)| is_within(told, &[uri])));
    let unsubscribed: Vec<_> = unsubscribed.copied().collect();
    for uri in &unsubscribed {
        let params = json!({ "uri": uri });
        let response = tool_runs
            .session
            .request("resources/unsubscribe", params)
            .await
            .map_err(NotPassed::as_not_tested)?;
        response.result().map_err(NotPassed::as_not_tested)?;
    }
    let mut again = ToolRun::run(ctx, &tool_runs.session, &relevant_headers.call, json!({})).await;
    tool_runs.session.listen(ctx.options.quiet_period).await;
    again.span.end = ctx.transcript.len();
    match updates(ctx, &again)
        .iter()
        .find(|(_, uri)| is_within(uri, &unsubscribed))
    {
        Some((at, uri)) => {
            let observed = format!("news of {uri} after it was unsubscribed from");
            Err(NotPassed::violation(observed, again.entries().chain([*at])))
        }
        None => {
            // Of a call that came to nothing, silence tells nothing.
            again.response()?;
            Evidence::from_entries(told.iter().map(|(at, _)| *at).chain(again.entries()))
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
                let observed = format!("`{method}` of a server that does not declare `{name}`");
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
            tool_runs.none("tells of a list that has changed")
        } else {
            NotPassed::not_applicable("the server tells of no changes, and declares none")
        });
    }
    Evidence::from_entries(evidence)
}

/// Returns the resources of which new content was told.
fn updates(ctx: &CheckContext, run: &ToolRun) -> Vec<(usize, String)> {
    let heard = run.notifications(ctx, UPDATED).into_iter();
    heard
        .filter_map(|(at, message)| Some((at, message["params"]["uri"].as_str()?.to_owned())))
        .collect()
}

/// Says whether a URI is one of these, or below one.
fn is_within(uri: &str, uris: &[&str]) -> bool {
    uris.iter().any(|parent| uri.starts_with(parent))
}
