//! What is said about tasks, and what belongs to them.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::lives::{Life, RELATED};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{is_heard_with, messages_within, received};
use crate::tape::Way;
use crate::visit::Visit;

/// How many pages of a list are read.
const PAGES: usize = 50;

pub(super) async fn result_related(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for life in visit.lives().await?.some()? {
        // An error has no place for it.
        let answer = life
            .result
            .as_ref()
            .filter(|answer| answer.value.get("result").is_some());
        let Some(answer) = answer else { continue };
        let named = &answer.value["result"]["_meta"][RELATED]["taskId"];
        if *named != json!(life.id) {
            return Err(answer.broken(format!("`_meta` names the task {named}")));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen.into_iter().take(2))
}

pub(super) async fn messages_related(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for life in visit.lives().await?.some()? {
        for message in messages_within(&visit.tape, Way::Received, life.meanwhile.clone()) {
            let params = &message.value["params"];
            let here = life.created.sent;
            if !here.is_none_or(|sent| is_heard_with(&visit.tape, sent, message.at)) {
                continue;
            }
            // Roots are asked for when a conversation begins as well, for no task at all.
            let asked = ["elicitation/create", "sampling/createMessage"]
                .iter()
                .any(|method| message.value["method"] == *method);
            let reported = params["progressToken"] == life.token;
            if message.value.get("method").is_none() || !(asked || reported) {
                continue;
            }
            let named = &params["_meta"][RELATED]["taskId"];
            if *named != json!(life.id) {
                let what = format!("{} names the task {named}", message.value["method"]);
                return Err(Unmet::broken(what, [message.at]));
            }
            seen.push(message.at);
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("no task asked or reported anything")),
        false => Seen::at(seen.into_iter().take(3)),
    }
}

pub(super) async fn methods_unrelated(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    for get in lives.iter().flat_map(|life| &life.gets) {
        if get.value["result"]["_meta"].get(RELATED).is_some() {
            return Err(get.broken("`tasks/get` says twice which task it is about"));
        }
    }
    for message in received(&visit.tape, "notifications/tasks/status") {
        if message.value["params"]["_meta"].get(RELATED).is_some() {
            let what = "a status notification says twice which task it is about";
            return Err(Unmet::broken(what, [message.at]));
        }
    }
    Seen::at(
        lives
            .iter()
            .flat_map(|life| &life.gets)
            .filter_map(|get| get.received)
            .take(3),
    )
}

pub(super) async fn parameter_wins(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let life = &lives.some()?[0];
    let other = lives
        .all
        .last()
        .map_or("check-no-such-task", |life| life.id.as_str());
    let params = json!({ "taskId": life.id, "_meta": { RELATED: { "taskId": other } } });
    let answer = lives
        .session
        .ask("tasks/get", params)
        .await
        .map_err(Unmet::aside)?;
    let found = &answer.result().map_err(Unmet::aside)?["taskId"];
    match *found == json!(life.id) {
        true => answer.seen(),
        false => Err(answer.broken(format!("the task {found} instead of {:?}", life.id))),
    }
}

pub(super) async fn progress_ends(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for life in visit.lives().await?.some()? {
        let progress = |at: &usize| {
            visit
                .tape
                .entry(*at)
                .json()
                .is_some_and(|it| is_progress(&it, life))
        };
        let reports: Vec<_> = life.meanwhile.clone().filter(progress).collect();
        let over = life.result.as_ref().and_then(|answer| answer.received);
        if let (Some(over), Some(&last)) = (over, reports.last()) {
            // Of two streams of HTTP, what is read first need not have been sent first.
            if visit.tape.entry(last).channel != visit.tape.entry(over).channel {
                continue;
            }
            if last > over {
                return Err(Unmet::broken(
                    "progress of a task that is over",
                    [over, last],
                ));
            }
            seen.extend([last, over]);
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("no task reported progress")),
        false => Seen::at(seen.into_iter().take(2)),
    }
}

pub(super) async fn get_is_no_stream(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    let gets: Vec<_> = lives.iter().flat_map(|life| &life.gets).collect();
    for get in &gets {
        let kind = get.header("content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return Err(get.broken("`tasks/get` is answered with a stream"));
        }
    }
    Seen::at(gets.iter().flat_map(|get| get.entries()).take(2))
}

pub(super) async fn list(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    visit.capability("/tasks/list").await?;
    let mut missing: HashSet<&str> = lives.some()?.iter().map(|life| life.id.as_str()).collect();
    let (mut params, mut seen) = (json!({}), Vec::new());
    for _ in 0..PAGES {
        let answer = lives
            .session
            .ask("tasks/list", params)
            .await
            .map_err(Unmet::aside)?;
        let result = answer.result()?;
        let listed = result["tasks"].as_array().into_iter().flatten();
        listed
            .filter_map(|task| task["taskId"].as_str())
            .for_each(|id| {
                missing.remove(id);
            });
        seen.extend(answer.entries());
        match result["nextCursor"].as_str() {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    // A task may be gone by now: then nobody can get it either.
    for id in missing {
        let get = lives
            .session
            .ask("tasks/get", json!({ "taskId": id }))
            .await
            .map_err(Unmet::aside)?;
        if get.value.get("result").is_some() {
            let what = format!("the task {id:?} can be got and is not listed");
            return Err(Unmet::broken(what, seen.into_iter().chain(get.entries())));
        }
    }
    Seen::at(seen)
}

pub(super) async fn list_cursor(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    visit.capability("/tasks/list").await?;
    let params = json!({ "cursor": "check-no-such-cursor" });
    let answer = lives
        .session
        .ask("tasks/list", params)
        .await
        .map_err(Unmet::aside)?;
    answer.expect_error(&[-32602])
}

fn is_progress(message: &Value, life: &Life) -> bool {
    message["method"] == "notifications/progress"
        && message["params"]["progressToken"] == life.token
}
