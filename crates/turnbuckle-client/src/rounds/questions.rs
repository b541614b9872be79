//! The questions of one round, and all their answers at once.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use turnbuckle_protocol::json;
use turnbuckle_protocol::types::InputResponses;

use crate::call::Boxed;
use crate::client::{Client, Reply};
use crate::error::CallError;

/// What a server wants to know before it goes on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Questions {
    #[serde(default)]
    input_requests: Option<BTreeMap<String, Question>>,
    /// Opaque: it goes back as it came.
    #[serde(default)]
    request_state: Option<String>,
}

/// One question: a request without envelope.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Box<RawValue>>,
}

impl Questions {
    /// Reads the questions of a result; there is at least one, or a state to come back with.
    pub(super) fn of(method: &'static str, reply: &Reply) -> Result<Self, CallError> {
        let invalid = |reason: String| CallError::InvalidAnswer { method, reason };
        let read = json::from_str::<Self>(reply.result.as_str());
        let questions = read.map_err(|error| invalid(error.to_string()))?;
        match (&questions.input_requests, &questions.request_state) {
            (None, None) => Err(invalid("it asks for input, but not for which".to_owned())),
            _ => Ok(questions),
        }
    }
}

impl Client {
    /// Answers all questions of a round; the first that gets no answer ends it.
    pub(super) async fn answer_all(
        &self,
        method: &'static str,
        questions: Questions,
    ) -> Result<(InputResponses, Option<String>), CallError> {
        let asked = questions.input_requests.unwrap_or_default();
        let responses = self.answer_each(method, asked).await?;
        Ok((responses, questions.request_state))
    }

    /// Answers questions at the same time, each under the key it came with.
    pub(crate) async fn answer_each(
        &self,
        method: &'static str,
        questions: BTreeMap<String, Question>,
    ) -> Result<InputResponses, CallError> {
        let most = self.inner.settings.limits.asked;
        if questions.len() > most {
            let reason = format!("more than {most} questions at once");
            return Err(CallError::InvalidAnswer { method, reason });
        }
        let open = questions.into_iter().map(|(key, question)| {
            let client = self.clone();
            let answer: Boxed<_> = Box::pin(async move {
                let answer = client.answer_question(method, question).await?;
                Ok((key, answer))
            });
            answer
        });
        all(open.collect()).await.map(InputResponses::from_iter)
    }

    async fn answer_question(
        &self,
        method: &'static str,
        question: Question,
    ) -> Result<Value, CallError> {
        let revision = self.inner.rules().revision;
        let callbacks = &self.inner.settings.callbacks;
        let params = question.params.as_deref().map_or("{}", RawValue::get);
        let answer = callbacks.answer(&question.method, params, revision).await;
        answer.map_err(|source| CallError::Unanswered {
            method,
            asked: question.method,
            source: Box::new(source),
        })
    }
}

/// Waits for all of them side by side, or for the first that fails.
async fn all<T>(mut open: Vec<Boxed<Result<T, CallError>>>) -> Result<Vec<T>, CallError> {
    let mut done = Vec::with_capacity(open.len());
    poll_fn(|cx| {
        let mut failed = None;
        open.retain_mut(|answer| match answer.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                match answer {
                    Ok(answer) => done.push(answer),
                    Err(error) => failed = Some(error),
                }
                false
            }
        });
        match (failed, open.is_empty()) {
            (Some(error), _) => Poll::Ready(Err(error)),
            (None, true) => Poll::Ready(Ok(())),
            (None, false) => Poll::Pending,
        }
    })
    .await?;
    Ok(done)
}
