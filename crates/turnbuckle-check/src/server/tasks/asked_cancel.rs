//! Tasks that are cancelled, and tasks that are not there.

use serde_json::json;
use tokio::time::sleep;

use crate::lives::{self, Life, Lives, is_over, task_id};
use crate::outcome::{Outcome, Seen, Unmet};
use crate::trials::token;
use crate::visit::Visit;

/// An id that no server has given.
const UNKNOWN: &str = "check-no-such-task";

pub(super) async fn unknown_id(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    let mut methods = vec!["tasks/get"];
    if lives.session.speech.has_handshake() {
        methods.push("tasks/result");
        if visit.capability("/tasks/cancel").await.is_ok() {
            methods.push("tasks/cancel");
        }
    }
    refuses(lives, &methods).await
}

pub(super) async fn unknown_id_elsewhere(visit: &Visit) -> Outcome {
    refuses(visit.lives().await?, &["tasks/update", "tasks/cancel"]).await
}

pub(super) async fn when_over(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    visit.capability("/tasks/cancel").await?;
    let Some(life) = lives.some()?.iter().find(|life| life.end().is_some()) else {
        return Err(Unmet::not_tested("no task came to its end"));
    };
    let answer = lives
        .session
        .ask("tasks/cancel", json!({ "taskId": life.id }))
        .await
        .map_err(Unmet::aside)?;
    answer.expect_error(&[-32602])
}

pub(super) async fn cancel(visit: &Visit) -> Outcome {
    let lives = visit.lives().await?;
    visit.capability("/tasks/cancel").await?;
    let took_long = |life: &&Life| {
        life.gets
            .first()
            .is_some_and(|get| !is_over(&get.value["result"]))
    };
    let Some(life) = lives.some()?.iter().find(took_long) else {
        return Err(Unmet::not_tested(
            "every task was over before it could be cancelled",
        ));
    };
    let created = lives::begin(&lives.session, &life.call, &token()).await?;
    let Some(id) = task_id(&created) else {
        return Err(Unmet::not_tested("the same call became no task again"));
    };
    let answer = lives
        .session
        .ask("tasks/cancel", json!({ "taskId": id }))
        .await
        .map_err(Unmet::aside)?;
    let Some(result) = answer.value.get("result") else {
        return Err(Unmet::not_tested(format!("{} was seen", answer.describe())));
    };
    if result["status"].is_string() && result["status"] != "cancelled" {
        let what = format!(
            "the status is {} when the cancellation is answered",
            result["status"]
        );
        return Err(answer.broken(what));
    }
    // Let what was begun come to an end, if it was not stopped.
    sleep(visit.options.silence * 3).await;
    let later = lives
        .session
        .ask("tasks/get", json!({ "taskId": id }))
        .await
        .map_err(Unmet::aside)?;
    let status = &later.value["result"]["status"];
    if status.is_string() && status != "cancelled" {
        let what = format!("the status is {status} after the task was cancelled");
        return Err(Unmet::broken(what, answer.entries().chain(later.entries())));
    }
    Seen::at(answer.entries().chain(later.entries()))
}

async fn refuses(lives: &Lives, methods: &[&str]) -> Outcome {
    let mut seen = Vec::new();
    for method in methods {
        let mut params = json!({ "taskId": UNKNOWN });
        if *method == "tasks/update" {
            params["inputResponses"] = json!({});
        }
        let answer = lives
            .session
            .ask(method, params)
            .await
            .map_err(Unmet::aside)?;
        seen.extend(answer.expect_error(&[-32602])?.entries);
    }
    Seen::at(seen)
}
