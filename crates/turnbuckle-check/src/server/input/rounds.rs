//! Requests that come back with answers.

use serde_json::{Value, json};

use super::capability_for;
use crate::outcome::{Outcome, Seen, Unmet};
use crate::overheard::{Message, messages};
use crate::session::Answer;
use crate::tape::Way;
use crate::trials::{Trial, ask, token};
use crate::visit::Visit;

pub(super) fn only_where_allowed(visit: &Visit) -> Outcome {
    let asking = asking(visit)?;
    for message in &asking {
        let request = message.entry.answers.map(|sent| visit.tape.entry(sent));
        let request = request.and_then(|entry| entry.json()).unwrap_or_default();
        let method = request["method"].as_str();
        let allowed = ["tools/call", "prompts/get", "resources/read"];
        if let Some(method) = method.filter(|method| !allowed.contains(method)) {
            let what = format!("`{method}` is answered with `input_required`");
            return Err(Unmet::broken(
                what,
                message.entry.answers.into_iter().chain([message.at]),
            ));
        }
    }
    Seen::at(asking.iter().map(|message| message.at).take(3))
}

pub(super) fn asks_for_something(visit: &Visit) -> Outcome {
    let asking = asking(visit)?;
    for message in &asking {
        let result = &message.value["result"];
        let requests = result["inputRequests"].as_object();
        if result.get("inputRequests").is_none() && result.get("requestState").is_none() {
            return Err(Unmet::broken("neither questions nor a state", [message.at]));
        }
        for request in requests.into_iter().flat_map(|requests| requests.values()) {
            let Some(method) = request["method"].as_str() else {
                continue;
            };
            if capability_for(method).is_none() {
                return Err(Unmet::broken(
                    format!("`{method}` is asked for"),
                    [message.at],
                ));
            }
        }
    }
    Seen::at(asking.iter().map(|message| message.at).take(3))
}

pub(super) async fn asks_again(visit: &Visit) -> Outcome {
    let (trial, mut params) = first_retry(visit).await?;
    params["inputResponses"] = json!({});
    let answer = retry(visit, trial, params, false).await?;
    answer.result()?;
    answer.seen()
}

pub(super) async fn ignores_surplus(visit: &Visit) -> Outcome {
    let (trial, mut params) = first_retry(visit).await?;
    params["inputResponses"]["check_nobody_asked"] = json!({ "action": "decline" });
    let answer = retry(visit, trial, params, false).await?;
    answer.result()?;
    answer.seen()
}

pub(super) async fn malformed_answers(visit: &Visit) -> Outcome {
    let (trial, mut params) = first_retry(visit).await?;
    params["inputResponses"] = "yes".into();
    let answer = retry(visit, trial, params, true).await?;
    answer.error()?;
    answer.seen()
}

/// Returns a trial that asks something, and the parameters of its second round.
pub(super) async fn first_retry(visit: &Visit) -> Result<(&Trial, Value), Unmet> {
    let trials = visit.trials().await?;
    let mut retries = trials
        .made
        .iter()
        .filter_map(|trial| Some((trial, trial.first_retry()?)));
    // Whoever asks for nothing but patience has no answers to get wrong.
    let found = retries.find(|(_, params)| params.get("inputResponses").is_some());
    found.ok_or_else(|| trials.none("asks the client anything"))
}

/// Comes back once; `deliberate` if what is brought is wrong on purpose.
pub(super) async fn retry(
    visit: &Visit,
    trial: &Trial,
    mut params: Value,
    deliberate: bool,
) -> Result<Answer, Unmet> {
    // The same parameters may be brought several times, each time by a request of its own.
    if let Some(own) = params.pointer_mut("/_meta/progressToken") {
        *own = token();
    }
    let session = &visit.trials().await?.session;
    let answer = ask(session, &trial.call, params).await?;
    if let (true, Some(sent)) = (deliberate, answer.sent) {
        visit.tape.amend(sent, |entry| entry.deliberate = true);
    }
    Ok(answer)
}

/// Returns all answers that ask for input.
fn asking(visit: &Visit) -> Result<Vec<Message>, Unmet> {
    let asking: Vec<_> = messages(&visit.tape, Way::Received)
        .filter(|message| message.value["result"]["resultType"] == "input_required")
        .collect();
    match asking.is_empty() {
        true => Err(Unmet::not_tested(
            "nothing was answered with `input_required`",
        )),
        false => Ok(asking),
    }
}
