//! Tasks that a server makes of calls by itself.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::lives::{self, EXTENSION, RELATED};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{is_heard_with, messages_within};
use crate::session::Answer;
use crate::tape::Way;
use crate::trials::ask;
use crate::visit::Visit;

pub(super) async fn undeclared_extension(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    lives::offered(session)?;
    let trials = visit.trials().await?;
    let mut answers: Vec<_> = trials
        .made
        .iter()
        .flat_map(|trial| trial.answers.clone())
        .collect();
    // Neither the parameter nor the capability of the revision before says anything here.
    let lives = visit.lives().await?;
    let mut old = visit.silent().await?;
    old.speech.capabilities["tasks"] = json!({ "requests": { "tools": { "call": {} } } });
    old.begin_properly().await.map_err(Unmet::aside)?;
    if let Some(life) = lives.all.first() {
        let mut params = life.call.params();
        params["task"] = json!({ "ttl": 60_000 });
        answers.push(ask(&old, &life.call, params).await.map_err(Unmet::aside)?);
    }
    for answer in &answers {
        if answer.value["result"]["resultType"] == "task" {
            return Err(answer.broken("a task for a request that does not declare the extension"));
        }
    }
    let last = answers.last().map(Answer::entries);
    Seen::at(last.into_iter().flatten())
}

pub(super) async fn needs_extension(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    lives::offered(session)?;
    let lives = visit.lives().await?;
    let trials = visit.trials().await.ok();
    for life in lives.some()? {
        // What was called before need not be called again.
        let plain = trials.and_then(|trials| {
            let mut made = trials.made.iter();
            let trial = made.find(|trial| trial.call.name == life.call.name)?;
            trial.answers.last().cloned()
        });
        let answer = match plain {
            Some(answer) => answer,
            None => ask(session, &life.call, life.call.params()).await?,
        };
        if answer.error().ok() == Some(-32021) {
            let required = &answer.value["error"]["data"]["requiredCapabilities"];
            return match required["extensions"].get(EXTENSION).is_some() {
                true => answer.seen(),
                false => Err(answer.broken(format!("`requiredCapabilities` is {required}"))),
            };
        }
    }
    Err(Unmet::not_applicable(
        "every call that became a task can be done without",
    ))
}

pub(super) async fn found_at_once(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    for life in lives {
        let Some(get) = life.gets.first() else {
            continue;
        };
        if get.value.get("error").is_some() {
            let what = format!("{} for a task that was just made", get.describe());
            return Err(Unmet::broken(
                what,
                life.created.entries().chain(get.entries()),
            ));
        }
    }
    let first = lives.iter().find_map(|life| life.gets.first());
    Seen::at(first.into_iter().flat_map(Answer::entries))
}

pub(super) async fn outcome(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let trials = visit.trials().await?;
    for life in lives.some()? {
        // What a plain call of the same tool brings tells what the task ought to.
        let plain = trials
            .made
            .iter()
            .find(|trial| trial.call.name == life.call.name);
        let plain = plain.and_then(|trial| trial.answers.last());
        let fails =
            plain.is_some_and(|answer| answer.value["result"]["isError"] == Value::Bool(true));
        let (true, Some(end)) = (fails, life.end()) else {
            continue;
        };
        let status = &end.value["result"]["status"];
        return match status == "failed" {
            true => {
                Err(end
                    .broken("the task of a tool that fails in a result has the status \"failed\""))
            }
            false => end.seen(),
        };
    }
    Err(Unmet::not_tested("no tool failed as a task"))
}

pub(super) async fn questions(visit: &Visit) -> Outcome {
    let mut seen = Vec::new();
    for life in visit.lives().await?.some()? {
        let mut answered = HashSet::new();
        for get in &life.gets {
            let task = &get.value["result"];
            if task["status"] != "input_required" {
                continue;
            }
            let asked = task["inputRequests"].as_object();
            let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
                return Err(get.broken("a task waits for input and does not say for what"));
            };
            for (key, request) in asked {
                answered.insert((key.clone(), request.to_string()));
                let same_key = answered.iter().filter(|(other, _)| other == key);
                if same_key.count() > 1 {
                    return Err(get.broken(format!("the key {key:?} stands for two questions")));
                }
            }
            seen.extend(get.entries());
        }
    }
    match seen.is_empty() {
        true => Err(Unmet::not_tested("no task asked anything")),
        false => Seen::at(seen.into_iter().take(2)),
    }
}

pub(super) async fn no_progress(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?.some()?;
    for life in lives {
        let created = life.created.received.unwrap_or_default();
        for message in messages_within(&visit.tape, Way::Received, created..life.meanwhile.end) {
            let sent = life.created.sent;
            if !sent.is_none_or(|sent| is_heard_with(&visit.tape, sent, message.at)) {
                continue;
            }
            let method = &message.value["method"];
            let logged = method == "notifications/message";
            let reported = message.value["params"]["progressToken"] == life.token;
            if logged || reported || related(&message.value) {
                let what = format!("{method} for a task");
                return Err(Unmet::broken(what, [created, message.at]));
            }
        }
    }
    Seen::at(
        lives
            .iter()
            .filter_map(|life| life.created.received)
            .take(3),
    )
}

fn related(message: &Value) -> bool {
    message.get("method").is_some() && message["params"]["_meta"].get(RELATED).is_some()
}
