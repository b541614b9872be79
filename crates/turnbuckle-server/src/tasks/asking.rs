//! What a task wants to know, and how it learns it.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::sleep;
use turnbuckle_protocol::RpcError;
use turnbuckle_store::{StoreError, TaskAnswer, TaskChange, TaskId};

use super::methods::changed;
use crate::{Server, context::Call, input::AskError};

/// Puts a question on the record of a task and waits for the answer.
pub(crate) async fn ask(
    call: &Call,
    key: &str,
    method: &'static str,
    params: Vec<u8>,
) -> Result<String, AskError> {
    let Some(task) = call.task() else {
        return Err(AskError::Unreachable { method });
    };
    let server = &call.server;
    let change = TaskChange::Ask {
        key: key.to_owned(),
        question: question(method, params),
    };
    match changed(server, &task.id, change).await {
        Ok(Some(_)) => {}
        Ok(None) => return Err(AskError::Gone { method }),
        Err(error) => return Err(unaskable(&error)),
    }
    let mut open = OpenQuestion {
        server,
        task: task.id,
        key,
        settled: false,
    };
    let told = task.when(|record| record.status.is_final() || record.answer(key).is_some());
    let record = tokio::select! {
        record = told => Some(record),
        // Nobody says that a task is forgotten.
        () = sleep(task.ttl()) => None,
    };
    open.settled = true;
    let Some(answer) = record.as_ref().and_then(|record| record.answer(key)) else {
        return Err(AskError::Gone { method });
    };
    let key = key.to_owned();
    // What was read need not be kept; whether that works changes nothing here.
    let heard = TaskChange::Heard { key };
    let _ = server.store_ref().tasks.update(&task.id, heard).await;
    read(answer, method)
}

fn read(answer: &TaskAnswer, method: &'static str) -> Result<String, AskError> {
    match answer {
        TaskAnswer::Given(json) => Ok(String::from_utf8_lossy(json).into_owned()),
        TaskAnswer::Refused(json) => {
            let error = serde_json::from_slice(json)
                .unwrap_or_else(|_| RpcError::internal("the client refused"));
            Err(AskError::Refused {
                method,
                error: Box::new(error),
            })
        }
    }
}

fn question(method: &str, params: Vec<u8>) -> Bytes {
    #[derive(Serialize)]
    struct Question<'a> {
        method: &'a str,
        params: &'a RawValue,
    }
    let params = String::from_utf8(params)
        .ok()
        .and_then(|json| RawValue::from_string(json).ok())
        .expect("parameters were just written as JSON");
    let question = Question {
        method,
        params: &params,
    };
    serde_json::to_vec(&question)
        .expect("our own types have string keys and no failing Serialize")
        .into()
}

fn unaskable(error: &StoreError) -> AskError {
    AskError::Unaskable {
        reason: error.to_string(),
    }
}

/// Takes a question back when the handler no longer waits for the answer.
struct OpenQuestion<'a> {
    server: &'a Server,
    task: TaskId,
    key: &'a str,
    settled: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let (server, task, key) = (self.server.clone(), self.task, self.key.to_owned());
        // Outside of a runtime everything is being torn down, the store with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime
                .spawn(async move { changed(&server, &task, TaskChange::Withdraw { key }).await });
        }
    }
}
