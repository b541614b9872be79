//! The methods of the extension.

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::lives::{self, Lives, task_id};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::session::Answer;
use crate::trials::token;
use crate::visit::Visit;

pub(super) async fn result_types(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let mut answers: Vec<_> = lives
        .some()?
        .iter()
        .flat_map(|life| life.gets.clone())
        .collect();
    answers.extend(acknowledgements(visit, lives).await?);
    for answer in &answers {
        let kind = &answer.value["result"]["resultType"];
        if kind.is_string() && kind != "complete" {
            return Err(answer.broken(format!("the `resultType` is {kind}")));
        }
    }
    Seen::at(answers.iter().flat_map(Answer::entries).take(4))
}

pub(super) async fn acknowledged(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let answers = acknowledgements(visit, lives).await?;
    for answer in &answers {
        let Some(result) = answer.value["result"].as_object() else {
            continue;
        };
        let mut fields = result
            .keys()
            .filter(|key| *key != "resultType" && *key != "_meta");
        if let Some(field) = fields.next() {
            return Err(answer.broken(format!("`{field}` in what should only acknowledge")));
        }
    }
    Seen::at(answers.iter().flat_map(Answer::entries).take(4))
}

pub(super) async fn surplus_answers(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let Some(life) = lives.some()?.first() else {
        return Err(Unmet::not_tested("there is no task"));
    };
    let responses = json!({ "check_nobody_asked": { "action": "decline" } });
    let params = json!({ "taskId": life.id, "inputResponses": responses });
    let answer = lives
        .session
        .ask("tasks/update", params)
        .await
        .map_err(Unmet::aside)?;
    answer.result()?;
    answer.seen()
}

pub(super) async fn methods_undeclared(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    lives::offered(session)?;
    let id = known_or_not(visit.lives().await?);
    let mut seen = Vec::new();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut params = json!({ "taskId": id });
        if method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        let answer = session.ask(method, params).await.map_err(Unmet::aside)?;
        seen.extend(answer.expect_error(&[-32021])?.entries);
    }
    Seen::at(seen)
}

pub(super) async fn listen_undeclared(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    lives::offered(session)?;
    let id = known_or_not(visit.lives().await?);
    let params = json!({ "notifications": { "taskIds": [id] } });
    let pending = session.begin("subscriptions/listen", params).await?;
    let sent = pending.sent;
    match session
        .answer_within(pending, visit.options.silence * 4)
        .await
    {
        Ok(answer) => answer.expect_error(&[-32021]),
        Err(Unmet::Broken { entries, .. }) => {
            let what = "the request to listen to a task is not refused";
            Err(Unmet::broken(what, sent.into_iter().chain(entries)))
        }
        Err(other) => Err(other),
    }
}

pub(super) async fn methods_are_gone(visit: &Visit) -> Outcome {
    let session = &visit.lives().await?.session;
    let mut seen = Vec::new();
    for (method, params) in [
        ("tasks/result", json!({ "taskId": "check" })),
        ("tasks/list", json!({})),
    ] {
        let answer = session.ask(method, params).await.map_err(Unmet::aside)?;
        match answer.value.get("result") {
            Some(_) => return Err(answer.broken(format!("a result of `{method}`"))),
            // Which error it has to be is for the rule about unknown methods to say.
            None => seen.extend(answer.entries()),
        }
    }
    Seen::at(seen)
}

pub(super) async fn capability_is_gone(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let opening = session.opening.as_ref();
    let opening = opening.ok_or_else(|| Unmet::not_tested("nobody has said what there is"))?;
    match opening.value["result"]["capabilities"].get("tasks") {
        Some(_) => Err(opening.broken("the capability `tasks`")),
        None => opening.seen(),
    }
}

/// Cancels a task, and returns what was acknowledged so far.
async fn acknowledgements(visit: &Visit, lives: &Lives) -> Result<Vec<Answer>, Unmet> {
    let mut answers: Vec<_> = lives
        .some()?
        .iter()
        .flat_map(|life| life.updates.clone())
        .collect();
    let created = lives::begin(&lives.session, &lives.all[0].call, &token()).await?;
    if let Some(id) = task_id(&created) {
        let params = json!({ "taskId": id });
        answers.push(
            lives
                .session
                .ask("tasks/cancel", params)
                .await
                .map_err(Unmet::aside)?,
        );
        sleep(visit.options.silence).await;
    }
    answers.retain(|answer| answer.value.get("result").is_some());
    match answers.is_empty() {
        true => Err(Unmet::not_tested("nothing was acknowledged")),
        false => Ok(answers),
    }
}

fn known_or_not(lives: &Lives) -> Value {
    lives
        .all
        .first()
        .map_or("check-no-such-task".into(), |life| life.id.clone().into())
}
