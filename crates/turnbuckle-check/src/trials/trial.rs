//! One trial of a tool: a call with all its rounds.

use std::{ops::Range, time::Duration};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::discovery::Call;
use crate::outcome::Unmet;
use crate::overheard::{Question, is_heard_with, messages_within, questions_within};
use crate::session::{Answer, Pending, Session};
use crate::tape::Way;
use crate::visit::Visit;

/// How often a call is made again with the answers that it asked for.
const ROUNDS: usize = 5;

/// A call of a tool, and what came of it.
#[derive(Debug)]
pub(crate) struct Trial {
    /// What was called.
    pub(crate) call: Call,
    /// What the request said beside its arguments: all but its questions and answers.
    pub(crate) params: Value,
    /// The entry of the first request.
    pub(crate) sent: Option<usize>,
    /// The answers: more than one if the server asked for input.
    pub(crate) answers: Vec<Answer>,
    /// Why there is no last answer.
    pub(crate) unmet: Option<Unmet>,
    /// How long it took.
    pub(crate) took: Duration,
    /// What was said meanwhile: the entries of the tape.
    pub(crate) meanwhile: Range<usize>,
}

impl Trial {
    /// Calls a tool, and answers what it asks for; `meta` goes with every round.
    pub(crate) async fn make(visit: &Visit, session: &Session, call: &Call, meta: Value) -> Self {
        let mut params = call.params();
        if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = meta;
        }
        Self::make_as(visit, session, call, params).await
    }

    /// Calls a tool with these parameters.
    pub(crate) async fn make_as(
        visit: &Visit,
        session: &Session,
        call: &Call,
        params: Value,
    ) -> Self {
        let from = visit.tape.len();
        let begun = Instant::now();
        let mut trial = Self {
            call: call.clone(),
            params,
            sent: None,
            answers: Vec::new(),
            unmet: None,
            took: Duration::ZERO,
            meanwhile: from..from,
        };
        let mut params = trial.params.clone();
        for _ in 0..ROUNDS {
            let asked = match begin(session, call, params.clone()).await {
                Ok(pending) => {
                    trial.sent = trial.sent.or(pending.sent);
                    answer(session, pending).await
                }
                Err(unmet) => Err(unmet),
            };
            match asked {
                Ok(answer) => trial.answers.push(answer),
                Err(unmet) => {
                    trial.unmet = Some(unmet.aside());
                    break;
                }
            }
            match trial.answers.last().and_then(|last| trial.retry(last)) {
                Some(retry) => params = retry,
                None => break,
            }
        }
        trial.took = begun.elapsed();
        trial.meanwhile = from..visit.tape.len();
        trial
    }

    /// Returns the parameters of the second round, if the first answer asks for input.
    pub(crate) fn first_retry(&self) -> Option<Value> {
        self.retry(self.answers.first()?)
    }

    /// Returns the parameters of the round that follows an answer, if that asks for input.
    fn retry(&self, answer: &Answer) -> Option<Value> {
        let result = answer.value.get("result")?;
        if result["resultType"] != "input_required" {
            return None;
        }
        let mut params = self.params.clone();
        // Each round is a request of its own, and so is its progress.
        if let Some(token) = params.pointer_mut("/_meta/progressToken") {
            *token = super::token();
        }
        if let Some(requests) = result["inputRequests"].as_object() {
            params["inputResponses"] = input_responses(requests);
        }
        if let Some(state) = result.get("requestState") {
            params["requestState"] = state.clone();
        }
        Some(params)
    }

    /// Returns what the server asked its client meanwhile.
    pub(crate) fn questions(&self, visit: &Visit) -> Vec<Question> {
        let mut questions = questions_within(&visit.tape, self.meanwhile.clone());
        questions.retain(|question| self.is_heard_here(visit, question.at));
        questions
    }

    /// Says whether something was heard in the conversation of the call.
    fn is_heard_here(&self, visit: &Visit, at: usize) -> bool {
        self.sent
            .is_some_and(|sent| is_heard_with(&visit.tape, sent, at))
    }

    /// Returns the notifications of this name that came meanwhile.
    pub(crate) fn heard(&self, visit: &Visit, method: &str) -> Vec<(usize, Value)> {
        messages_within(&visit.tape, Way::Received, self.meanwhile.clone())
            .filter(|message| message.value["method"] == method)
            .filter(|message| self.is_heard_here(visit, message.at))
            .map(|message| (message.at, message.value))
            .collect()
    }

    /// Returns the last answer; that there is none is for another rule to say.
    pub(crate) fn answer(&self) -> Result<&Answer, Unmet> {
        match (&self.unmet, self.answers.last()) {
            (None, Some(answer)) => Ok(answer),
            (unmet, _) => Err(unmet
                .clone()
                .unwrap_or_else(|| Unmet::not_tested("the call was not made"))),
        }
    }

    /// Returns the entries that show it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> {
        self.answers.iter().flat_map(Answer::entries)
    }
}

/// Makes the call with these parameters, and waits for the answer. That none comes is for another rule to say.
pub(crate) async fn ask(session: &Session, call: &Call, params: Value) -> Result<Answer, Unmet> {
    let pending = begin(session, call, params).await?;
    answer(session, pending).await
}

async fn begin(session: &Session, call: &Call, params: Value) -> Result<Pending, Unmet> {
    session
        .begin_with("tools/call", params, call.headers())
        .await
}

async fn answer(session: &Session, pending: Pending) -> Result<Answer, Unmet> {
    let id = pending.id.clone();
    let answer = session.answer(pending).await;
    if answer.is_err() {
        give_up(session, id).await;
    }
    answer.map_err(Unmet::aside)
}

/// Tells the server that nobody waits any more, so that it can turn to what comes next.
async fn give_up(session: &Session, id: Option<Value>) {
    let closes = session.http().is_ok() && !session.speech.has_handshake();
    if let (Some(id), false) = (id, closes) {
        let params = json!({ "requestId": id, "reason": "It takes too long." });
        // Whether that arrives matters to nobody.
        let _ = session.notify("notifications/cancelled", params).await;
    }
}

/// Answers what a server asks for, in the way that can do no harm: no form is filled in.
pub(crate) fn input_responses(requests: &Map<String, Value>) -> Value {
    let answer = |request: &Value| match request["method"].as_str() {
        Some("roots/list") => json!({ "roots": [] }),
        Some("sampling/createMessage") => json!({
            "role": "assistant", "model": "none", "stopReason": "endTurn",
            "content": { "type": "text", "text": "This is a check: no model was asked." },
        }),
        _ => json!({ "action": "decline" }),
    };
    let answers = requests
        .iter()
        .map(|(key, request)| (key.clone(), answer(request)));
    Value::Object(answers.collect())
}

#[cfg(test)]
mod tests {
    use turnbuckle_protocol::revision::Revision;

    use super::*;
    use crate::tape::Entry;
    use crate::{Options, Target};

    #[test]
    fn a_call_without_an_answer_is_not_charged_with_what_others_were_asked() {
        let target = Target::streams("silent", || async {
            Ok(tokio::io::split(tokio::io::duplex(1).0))
        });
        let visit = Visit::new(&target, &Options::default(), Revision::V2025_03_26);
        let sent = visit.tape.push(Entry::sent(1, "{}"));
        let question = r#"{"jsonrpc":"2.0","method":"roots/list","id":0}"#;
        for channel in [1, 2] {
            visit.tape.push(Entry::received(channel, question));
        }
        let trial = Trial {
            call: Call {
                tool: json!({}),
                name: "slow".to_owned(),
                arguments: json!({}),
                only_as_task: false,
                is_free: true,
            },
            params: json!({}),
            sent: Some(sent),
            answers: Vec::new(),
            unmet: Some(Unmet::not_tested("no answer")),
            took: Duration::ZERO,
            meanwhile: 0..visit.tape.len(),
        };

        let asked: Vec<_> = trial.questions(&visit).iter().map(|one| one.at).collect();

        assert_eq!(asked, [1]);
    }
}
