//! `tasks/result`: waits for what comes of a task, and meanwhile asks the client what the task wants to know.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;
use turnbuckle_protocol::{RpcError, types::tasks::legacy::RelatedTask};
use turnbuckle_store::{Change, TaskAnswer, TaskChange, TaskOutcome, TaskRecord};

use super::{
    methods::{changed, failed, find},
    shape,
};
use crate::{
    context::Call,
    exchange::{BoxFuture, Outcome},
    input::AskError,
    lifecycle::live::Tags,
    reply::Reply,
};

/// Waits until a task has ended, and answers with what came of it.
pub(super) async fn wait(call: &Arc<Call>, id: &str) -> Outcome {
    // Before the first look: what changes after it must not be missed.
    let mut changes = call.server.store_ref().bus.subscribe();
    let mut record = find(call, id).await?;
    let running = call.server.running_tasks().find(&record.id);
    let _watching = running.map(|task| task.watch(call));
    let mut asked = Asked::default();
    // A task that is forgotten ends nowhere, and nobody is told.
    let mut over = pin!(sleep(record.ttl));
    while record.outcome.is_none() {
        asked.follow(call, &record);
        record = tokio::select! {
            change = changes.next() => match change {
                Ok(Change::Task { task }) if task.id == record.id && task.changes > record.changes => task,
                Ok(_) => continue,
                Err(_) => find(call, id).await?,
            },
            (key, answer) = asked.answered() => {
                let change = TaskChange::Answer { key, answer };
                match changed(&call.server, &record.id, change).await {
                    Ok(Some(record)) => record,
                    // Somebody else answered first.
                    Ok(None) => find(call, id).await?,
                    Err(error) => return Err(failed(&error)),
                }
            },
            () = over.as_mut() => {
                over.set(sleep(record.ttl));
                find(call, id).await?
            }
        };
    }
    match &record.outcome {
        Some(TaskOutcome::Result(result)) => {
            let unclosed = result.strip_suffix(b"}").unwrap_or(result);
            Ok(Reply::new(call).written(unclosed, None))
        }
        Some(TaskOutcome::Error(error)) => {
            Err(serde_json::from_slice(error)
                .unwrap_or_else(|_| RpcError::internal("the task failed")))
        }
        None => Err(RpcError::internal("the task has no outcome")),
    }
}

/// Questions that were passed on to the client and wait for its answers.
#[derive(Default)]
struct Asked(Vec<(String, BoxFuture<Option<TaskAnswer>>)>);

impl Asked {
    /// Asks what the task wants to know and was not asked yet; takes back what it no longer wants to know.
    fn follow(&mut self, call: &Arc<Call>, record: &TaskRecord) {
        let open = |key: &str| record.questions.iter().any(|(open, _)| open == key);
        self.0.retain(|(key, _)| open(key));
        for (key, question) in &record.questions {
            if self.0.iter().all(|(asked, _)| asked != key) {
                let ask = pass_on(call.clone(), question.clone(), shape::related(record));
                self.0.push((key.clone(), Box::pin(ask)));
            }
        }
    }

    /// Waits for the next answer.
    async fn answered(&mut self) -> (String, TaskAnswer) {
        poll_fn(|cx| self.poll_answered(cx)).await
    }

    fn poll_answered(&mut self, cx: &mut Context<'_>) -> Poll<(String, TaskAnswer)> {
        for (key, question) in &mut self.0 {
            let Poll::Ready(answer) = question.as_mut().poll(cx) else {
                continue;
            };
            // Asked once; whatever came of it, it stays on the list and is not asked again.
            *question = Box::pin(std::future::pending());
            if let Some(answer) = answer {
                return Poll::Ready((key.clone(), answer));
            }
        }
        Poll::Pending
    }
}

/// Asks the client one question of a task. Nothing comes of it if the client is gone.
async fn pass_on(call: Arc<Call>, question: bytes::Bytes, task: RelatedTask) -> Option<TaskAnswer> {
    #[derive(Deserialize)]
    struct Question<'a> {
        #[serde(borrow)]
        method: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        params: &'a RawValue,
    }
    let question: Question<'_> = serde_json::from_slice(&question).ok()?;
    let method = known(&question.method)?;
    let live = call.caller.live.as_ref()?;
    let tags = Tags {
        task: Some(&task),
        ..call.tags()
    };
    let params = question.params.get().as_bytes();
    let patience = call.server.patience();
    let asked = live.ask(&call.outbox, method, params, tags, patience);
    match asked.await {
        Ok(answer) => Some(TaskAnswer::Given(answer.into())),
        Err(AskError::Gone { .. }) => None,
        Err(AskError::Refused { error, .. }) => Some(TaskAnswer::Refused(shape::error(&error))),
        Err(error) => {
            let error = RpcError::internal(error.to_string());
            Some(TaskAnswer::Refused(shape::error(&error)))
        }
    }
}

/// The method of a question, which is always one of ours.
fn known(method: &str) -> Option<&'static str> {
    ["elicitation/create", "sampling/createMessage", "roots/list"]
        .into_iter()
        .find(|known| *known == method)
}
