//! Subscriptions to single resources, and lists that change for everybody.

use serde_json::json;

use super::{CHANGES, UPDATED};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::trials::Trial;
use crate::visit::Visit;

/// How many resources are looked at to find one that can be subscribed to.
const TRIED: usize = 5;

pub(super) async fn subscribe(visit: &Visit) -> Outcome {
    visit.capability("/resources/subscribe").await?;
    let resources = &visit.discovered().await?.resources;
    let uris = resources.iter().filter_map(|it| it["uri"].as_str());
    let session = visit.fresh().await?;
    let mut refused = Unmet::not_tested("the server lists no resources");
    // Nothing says that every resource can be subscribed to.
    for uri in uris.take(TRIED) {
        let ask = |method| session.ask(method, json!({ "uri": uri }));
        let subscribed = ask("resources/subscribe").await.map_err(Unmet::aside)?;
        if let Err(why) = subscribed.result() {
            refused = why;
            continue;
        }
        let ended = ask("resources/unsubscribe").await.map_err(Unmet::aside)?;
        ended.result()?;
        return Seen::at(subscribed.entries().chain(ended.entries()));
    }
    Err(refused)
}

pub(super) async fn only_subscribed(visit: &Visit) -> Outcome {
    visit.capability("/resources/subscribe").await?;
    let trials = visit.trials().await?;
    let subscribed = trials.news.subscribed.iter();
    let uris: Vec<_> = subscribed
        .filter(|(_, answer)| answer.as_ref().is_ok_and(|answer| answer.result().is_ok()))
        .map(|(uri, _)| uri.as_str())
        .collect();
    for trial in &trials.made {
        for (at, uri) in updates(visit, trial) {
            if !is_within(&uri, &uris) {
                let what = format!("news of {uri}, which nobody has subscribed to");
                return Err(Unmet::broken(what, [at]));
            }
        }
    }
    let telling = trials.that_sent(visit, UPDATED);
    let Some(telling) = telling.first() else {
        return Err(trials.none("tells of new content of a resource that is subscribed to"));
    };
    let told = updates(visit, telling);
    let unsubscribed = uris
        .iter()
        .filter(|uri| told.iter().any(|(_, told)| is_within(told, &[uri])));
    let unsubscribed: Vec<_> = unsubscribed.copied().collect();
    for uri in &unsubscribed {
        let params = json!({ "uri": uri });
        let answer = trials
            .session
            .ask("resources/unsubscribe", params)
            .await
            .map_err(Unmet::aside)?;
        answer.result().map_err(Unmet::aside)?;
    }
    let mut again = Trial::make(visit, &trials.session, &telling.call, json!({})).await;
    trials.session.listen(visit.options.silence).await;
    again.meanwhile.end = visit.tape.len();
    match updates(visit, &again)
        .iter()
        .find(|(_, uri)| is_within(uri, &unsubscribed))
    {
        Some((at, uri)) => {
            let what = format!("news of {uri} after it was unsubscribed from");
            Err(Unmet::broken(what, again.entries().chain([*at])))
        }
        None => {
            // Of a call that came to nothing, silence tells nothing.
            again.answer()?;
            Seen::at(told.iter().map(|(at, _)| *at).chain(again.entries()))
        }
    }
}

pub(super) async fn changes_declared(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let mut seen = Vec::new();
    for (method, _, pointer) in CHANGES {
        for trial in trials.that_sent(visit, method) {
            let at = trial.heard(visit, method)[0].0;
            if visit.capability(pointer).await.is_err() {
                let name = pointer.trim_start_matches('/').replace('/', ".");
                let what = format!("`{method}` of a server that does not declare `{name}`");
                return Err(Unmet::broken(what, [at]));
            }
            seen.push(at);
        }
    }
    if seen.is_empty() {
        let mut declared = false;
        for (_, _, pointer) in CHANGES {
            declared |= visit.capability(pointer).await.is_ok();
        }
        return Err(match declared {
            true => trials.none("tells of a list that has changed"),
            false => Unmet::not_applicable("the server tells of no changes, and declares none"),
        });
    }
    Seen::at(seen)
}

/// Returns the resources of which new content was told.
fn updates(visit: &Visit, trial: &Trial) -> Vec<(usize, String)> {
    let heard = trial.heard(visit, UPDATED).into_iter();
    heard
        .filter_map(|(at, message)| Some((at, message["params"]["uri"].as_str()?.to_owned())))
        .collect()
}

/// Says whether a URI is one of these, or below one.
fn is_within(uri: &str, uris: &[&str]) -> bool {
    uris.iter().any(|parent| uri.starts_with(parent))
}
