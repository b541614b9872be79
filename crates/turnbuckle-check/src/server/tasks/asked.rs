//! How tasks begin and end.

use std::collections::HashSet;

use serde_json::{Value, json};
use turnbuckle_protocol::revision::Revision;

use crate::discovery::Call;
use crate::lives::{self, EXTENSION, Lives, is_over, takes_tasks, task_id};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::Session;
use crate::trials::{ask, token};
use crate::visit::Visit;
use crate::wire::http::Caller;

/// The shortest id that may be random enough.
const SHORTEST: usize = 12;

pub(super) async fn created(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let mut seen = Vec::new();
    for (_, answer) in &lives.begun {
        let Ok(answer) = answer else { continue };
        if answer.value.get("result").is_none() {
            continue;
        }
        if answer.value["result"].get("task").is_none() {
            return Err(answer.broken("a result without `task`"));
        }
        seen.extend(answer.entries());
    }
    match seen.is_empty() {
        true => Err(no_call(lives)),
        false => Seen::at(seen.into_iter().take(2)),
    }
}

pub(super) async fn begins_working(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    for life in lives {
        let status = &life.created.value["result"]["task"]["status"];
        if status.is_string() && status != "working" {
            return Err(life
                .created
                .broken(format!("a new task has the status {status}")));
        }
    }
    lives[0].created.seen()
}

pub(super) async fn valid_steps(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let mut seen = Vec::new();
    for life in lives.some()? {
        let mut statuses = life.statuses();
        let again = lives
            .session
            .ask("tasks/get", json!({ "taskId": life.id }))
            .await;
        if let (Ok(again), true) = (again, life.end().is_some()) {
            let status = again.value["result"]["status"].as_str().map(str::to_owned);
            statuses.extend(again.received.zip(status));
        }
        for step in statuses.windows(2) {
            let [(at, before), (later, after)] = step else {
                continue;
            };
            if is_over(&json!({ "status": before })) && before != after {
                let what = format!("a task goes from {before:?} to {after:?}");
                return Err(Unmet::broken(what, [*at, *later]));
            }
        }
        seen.extend(statuses.iter().map(|(at, _)| *at));
    }
    Seen::at(seen.into_iter().take(4))
}

pub(super) async fn ids_differ(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    let mut ids = HashSet::new();
    for life in lives {
        if !ids.insert(&life.id) {
            return Err(life
                .created
                .broken(format!("the id {:?} is there twice", life.id)));
        }
    }
    match ids.len() {
        1 => Err(Unmet::not_tested("only one call became a task")),
        _ => Seen::at(lives.iter().filter_map(|life| life.created.received)),
    }
}

pub(super) async fn ids_unguessable(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    // In the revision with a handshake, a task that is bound to who asked for it may have any id.
    let is_known = |caller: &Caller| caller.has_header("authorization");
    if visit.revision < Revision::MODERN && visit.caller().as_ref().is_ok_and(is_known) {
        return Err(Unmet::not_applicable(
            "tasks can be bound to whom the server knows",
        ));
    }
    for life in lives {
        let digits = life.id.chars().filter(char::is_ascii_digit).count();
        if life.id.len() < SHORTEST || (digits == life.id.len() && digits < 3 * SHORTEST) {
            return Err(life
                .created
                .broken(format!("the id {:?} can be guessed", life.id)));
        }
    }
    Seen::at(lives.iter().filter_map(|life| life.created.received))
}

pub(super) async fn only_as_task(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let calls = &visit.discovered().await?.calls;
    let Some(call) = calls.iter().find(|call| call.only_as_task) else {
        return Err(Unmet::not_applicable(
            "no tool that may be called asks for tasks",
        ));
    };
    let answer = ask(&lives.session, call, call.params()).await?;
    answer.expect_error(&[-32601])
}

pub(super) async fn never_as_task(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let calls = &visit.discovered().await?.calls;
    let plain = calls.iter().filter(|call| !takes_tasks(call));
    let Some(call) = quickest(visit, plain).await else {
        return Err(Unmet::not_tested(
            "all tools that may be called can become tasks",
        ));
    };
    let answer = begin(&lives.session, call).await?;
    answer.expect_error(&[-32601])
}

pub(super) async fn undeclared_ignored(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    if lives::offered(session).is_ok() {
        return Err(Unmet::not_applicable(
            "the server declares tasks for calls of tools",
        ));
    }
    let calls = visit.callable().await?;
    // One that says that it takes tasks would be the first to make one.
    let mut call = quickest(visit, calls.iter().copied().filter(|it| takes_tasks(it))).await;
    if call.is_none() {
        call = quickest(visit, calls.iter().copied()).await;
    }
    let Some(call) = call else {
        return Err(Unmet::not_tested("no tool may be called"));
    };
    let answer = begin(session, call).await?;
    match task_id(&answer) {
        Some(_) => Err(answer.broken("a task of a server that declares none")),
        None if answer.value.get("result").is_some() => answer.seen(),
        None => Err(Unmet::not_tested(format!("{} was seen", answer.describe()))),
    }
}

pub(super) async fn result(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for life in visit.lives().await?.some()? {
        let (Some(answer), Some(end)) = (&life.result, life.end()) else {
            continue;
        };
        let status = &end.value["result"]["status"];
        let brought = answer.value.get("result");
        let whole = brought.is_none_or(|result| result.get("content").is_some());
        if !whole || (brought.is_none() && status == "completed") {
            let what = format!(
                "{} for a task with the status {status}",
                describe(answer.value.get("result"))
            );
            return Err(answer.broken(what));
        }
        seen.extend(answer.entries());
    }
    Seen::at(seen.into_iter().take(4))
}

pub(super) async fn result_waits(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for life in visit.lives().await?.some()? {
        let (Some(answer), [early, late]) = (&life.result, life.gets.as_slice()) else {
            continue;
        };
        let status = &late.value["result"]["status"];
        if status == "working" || status == "input_required" {
            let what = format!("an answer while the task has the status {status}");
            return Err(Unmet::broken(what, answer.entries().chain(late.entries())));
        }
        if !is_over(&early.value["result"]) {
            seen.extend(answer.entries());
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested(
            "every task was over before anybody could wait for it",
        )),
        false => Seen::at(seen.into_iter().take(2)),
    }
}

pub(super) async fn failed_with_tool(visit: &Visit) -> Outcome {
    for life in visit.lives().await?.some()? {
        let (Some(answer), Some(end)) = (&life.result, life.end()) else {
            continue;
        };
        if answer.value["result"]["isError"] == Value::Bool(true) {
            let status = &end.value["result"]["status"];
            return match status == "failed" {
                true => end.seen(),
                false => {
                    Err(end.broken(format!("the status is {status}, and the tool has failed")))
                }
            };
        }
    }
    Err(Unmet::not_tested("no tool failed as a task"))
}

pub(super) async fn failure_explained(visit: &Visit) -> Outcome {
    for life in visit.lives().await?.some()? {
        let failed = life
            .end()
            .filter(|end| end.value["result"]["status"] == "failed");
        if let Some(failed) = failed {
            let message = failed.value["result"]["statusMessage"].as_str();
            return match message.is_some_and(|message| !message.trim().is_empty()) {
                true => failed.seen(),
                false => Err(failed.broken("a task has failed, and does not say why")),
            };
        }
    }
    Err(Unmet::not_tested("no task has failed"))
}

pub(super) async fn extension_is_for_later(visit: &Visit) -> Outcome {
    visit.lives().await?;
    let mut session = visit.silent().await?;
    session.speech.capabilities["extensions"] = json!({ EXTENSION: {} });
    session.begin_properly().await.map_err(Unmet::aside)?;
    let calls = visit.callable().await?;
    let able = calls.into_iter().filter(|call| takes_tasks(call));
    let Some(call) = quickest(visit, able).await else {
        return Err(Unmet::not_tested("no tool can become a task or not"));
    };
    let answer = ask(&session, call, call.params()).await?;
    match task_id(&answer) {
        Some(_) => Err(answer.broken("a task that the call has not asked for")),
        None => answer.seen(),
    }
}

async fn begin(session: &Session, call: &Call) -> Result<crate::session::Answer, Unmet> {
    lives::begin(session, call, &token()).await
}

/// Returns the call that took the least when it was tried; the first if none was.
async fn quickest<'a>(visit: &Visit, calls: impl Iterator<Item = &'a Call>) -> Option<&'a Call> {
    let trials = visit.trials().await.ok();
    calls.min_by_key(|call| trials.map(|trials| trials.took(call)))
}

fn no_call(lives: &Lives) -> Unmet {
    let count = lives.begun.len();
    Unmet::not_tested(format!("none of {count} calls was accepted as a task"))
}

fn describe(result: Option<&Value>) -> &'static str {
    match result {
        Some(_) => "a result that is not that of the tool",
        None => "an error",
    }
}
