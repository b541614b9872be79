//! Log messages.

use serde_json::{Value, json};

use crate::outcome::{Outcome, Seen, Unmet};
use crate::rule::{Area, Rule};
use crate::trials::{LOG_LEVEL, Trial, set_level};
use crate::visit::Visit;

/// The levels, from the least to the most severe.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

pub(crate) const RULES: &[Rule] = &[
    Rule::server("logging.declared", Area::Logging, &["logging.capability"])
        .says("A server that sends log messages declares the capability `logging`.")
        .cure("Declare `logging` among the capabilities, or send no log messages.")
        .ask(|visit| Box::pin(declared(visit))),
    Rule::server("logging.set-level", Area::Logging, &["logging.set-level.answer"])
        .says("A server that declares `logging` lets its client choose a level by `logging/setLevel`.")
        .cure("Answer `logging/setLevel` with an empty result for each of the eight levels.")
        .ask(|visit| Box::pin(level_set(visit))),
    Rule::server("logging.respects-level", Area::Logging, &["logging.set-level.respect"])
        .says("No log message comes that is less severe than the level chosen.")
        .cure("Compare the level of each message with the one that the client has set, and send those at or above it.")
        .gently()
        .ask(|visit| Box::pin(respects_level(visit))),
    Rule::server(
        "logging.unknown-level",
        Area::Logging,
        &["logging.error.invalid-level", "logging.request.invalid-level"],
    )
    .says("A level that is none of the eight is refused with the error -32602.")
    .cure("Answer with the error -32602 when the level is unknown.")
    .ask(|visit| Box::pin(unknown_level(visit))),
    Rule::server("logging.only-when-asked", Area::Logging, &["logging.request.opt-in"])
        .says("A request that asks for no log messages gets none.")
        .cure("Send log messages only for requests that have `io.modelcontextprotocol/logLevel` in `_meta`.")
        .ask(|visit| Box::pin(only_when_asked(visit))),
    Rule::server("logging.set-level-is-gone", Area::Logging, &["logging.set-level.removed"])
        .says("There is no `logging/setLevel` any more: requests say what they want themselves.")
        .cure("Treat `logging/setLevel` as an unknown method in this revision.")
        .gently()
        .ask(|visit| Box::pin(set_level_is_gone(visit))),
];

/// The name of the notification.
const MESSAGE: &str = "notifications/message";

async fn declared(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let logged = trials.that_sent(visit, MESSAGE);
    let declares = visit.capability("/logging").await;
    let Some(trial) = logged.first() else {
        declares?;
        return Err(trials.none("logs anything"));
    };
    let (at, _) = trial.heard(visit, MESSAGE)[0];
    match declares {
        Ok(_) => Seen::at([at]),
        Err(_) => Err(Unmet::broken(
            "a log message of a server that does not declare `logging`",
            [at],
        )),
    }
}

async fn level_set(visit: &Visit) -> Outcome {
    visit.capability("/logging").await?;
    let answer = set_level(visit.session().await?, "error")
        .await
        .map_err(Unmet::aside)?;
    answer.result()?;
    answer.seen()
}

async fn respects_level(visit: &Visit) -> Outcome {
    visit.capability("/logging").await?;
    let trials = visit.trials().await?;
    let logged = trials.that_sent(visit, MESSAGE);
    if logged.is_empty() {
        return Err(trials.none("logs anything"));
    }
    // Of a tool that logs at several levels, one more can be heard than is missed.
    let held_back = |trial: &Trial| LEVELS.get(lowest_level(visit, trial)? + 1);
    let told = logged
        .into_iter()
        .filter_map(|trial| Some((trial, held_back(trial)?)));
    let lowest = told.min_by_key(|(trial, wanted)| (rank(&(**wanted).into()), trial.took));
    let Some((trial, &wanted)) = lowest else {
        return Err(trials.none("logs anything that a level could hold back"));
    };
    let session = visit.fresh().await?;
    let set = set_level(&session, wanted).await.map_err(Unmet::aside)?;
    set.result().map_err(Unmet::aside)?;
    let from = visit.tape.len();
    let again = Trial::make(visit, &session, &trial.call, json!({})).await;
    session.listen(visit.options.silence).await;
    let again = Trial {
        meanwhile: from..visit.tape.len(),
        ..again
    };
    for (at, message) in again.heard(visit, MESSAGE) {
        let level = &message["params"]["level"];
        if rank(level) < rank(&wanted.into()) && rank(level).is_some() {
            let what = format!("a message of the level {level} after {wanted:?} was set");
            return Err(Unmet::broken(what, set.entries().chain([at])));
        }
    }
    // Of a call that came to nothing, silence tells nothing.
    again.answer()?;
    Seen::at(set.entries().chain(again.entries()))
}

async fn unknown_level(visit: &Visit) -> Outcome {
    visit.capability("/logging").await?;
    let session = visit.session().await?;
    let message = match session.speech.has_handshake() {
        true => session.speech.request(
            "check-level",
            "logging/setLevel",
            json!({ "level": "loud" }),
        ),
        false => {
            let params = json!({ "_meta": { LOG_LEVEL: "loud" } });
            session
                .speech
                .request("check-level", "server/discover", params)
        }
    };
    let pending = session.send(message, true).await?;
    session
        .answer(pending)
        .await
        .map_err(Unmet::aside)?
        .expect_error(&[-32602])
}

async fn only_when_asked(visit: &Visit) -> Outcome {
    let trials = visit.trials().await?;
    let logged = trials.that_sent(visit, MESSAGE);
    let Some(trial) = logged.into_iter().min_by_key(|trial| trial.took) else {
        visit.capability("/logging").await?;
        return Err(trials.none("logs anything"));
    };
    let session = visit.session().await?;
    let again = Trial::make(visit, session, &trial.call, json!({})).await;
    match again.heard(visit, MESSAGE).first() {
        Some((at, _)) => Err(Unmet::broken(
            "a log message for a request that asks for none",
            again.entries().chain([*at]),
        )),
        None => Seen::at(again.entries()),
    }
}

async fn set_level_is_gone(visit: &Visit) -> Outcome {
    super::is_gone(visit, "logging/setLevel", json!({ "level": "error" })).await
}

/// Returns the place of the least severe level of which a call has logged something.
fn lowest_level(visit: &Visit, trial: &Trial) -> Option<usize> {
    let heard = trial.heard(visit, MESSAGE);
    let levels = heard.iter().map(|(_, message)| &message["params"]["level"]);
    levels.filter_map(rank).min()
}

fn rank(level: &Value) -> Option<usize> {
    let level = level.as_str()?;
    LEVELS.iter().position(|&other| other == level)
}
