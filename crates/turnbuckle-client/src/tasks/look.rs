//! What a server says about a task, in the words of either design.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use turnbuckle_protocol::RpcError;
use turnbuckle_protocol::json::{self, ReadError};
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{
    InputResponses, ResultType, TaskStatus,
    tasks::{GetTaskParams, GetTaskResult, Task as Described, UpdateTaskParams, legacy},
};

use super::{Task, taken::Taken};
use crate::answer::RawJson;
use crate::client::{Beside, Reply, complete};
use crate::error::CallError;
use crate::lifecycle::TaskDesign;
use crate::rounds::Question;

pub(super) const CALL: &str = method::TOOLS_CALL.name;
const GET: &str = method::TASKS_GET.name;

/// A task, and what its status brings along.
#[derive(Debug)]
pub(super) struct Looked {
    pub(super) task: Described,
    pub(super) with: With,
    reply: Reply,
}

/// What comes with a task since 2026-07-28.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct With {
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
    pub(super) input_requests: Option<BTreeMap<String, Question>>,
}

impl Task {
    /// Asks how the task is doing.
    pub(super) async fn look(&self) -> Result<Looked, CallError> {
        let params = GetTaskParams::new(&self.0.id);
        let beside = Beside::named(&self.0.id);
        let client = &self.0.client;
        let reply = client.ask_once(&method::TASKS_GET, &params, &beside, &self.0.options);
        let looked = Looked::read(reply.await?)?;
        if looked.task.task_id != self.0.id {
            return Err(invalid("it is about another task".to_owned()));
        }
        let mut state = self.state();
        state.described = Some(looked.task.clone());
        let open = looked.with.input_requests.iter().flatten();
        state.open = open.map(|(key, _)| key.clone()).collect();
        Ok(looked)
    }

    /// Sends answers to questions that are open.
    pub(super) async fn update(&self, mut responses: InputResponses) -> Result<(), CallError> {
        {
            let state = self.state();
            responses.retain(|key, _| state.open.contains(key));
        }
        if responses.is_empty() {
            return Ok(());
        }
        let taken = Taken::new(self, responses.keys().cloned());
        let params = UpdateTaskParams::new(&self.0.id, responses);
        let beside = Beside::named(&self.0.id);
        let client = &self.0.client;
        let reply = client.ask_once(&method::TASKS_UPDATE, &params, &beside, &self.0.options);
        complete(method::TASKS_UPDATE.name, &reply.await?)?;
        taken.answered();
        Ok(())
    }

    /// Asks for the result of the task, and waits for it: 2025-11-25.
    pub(super) async fn fetch(&self) -> Result<Reply, CallError> {
        let params = GetTaskParams::new(&self.0.id);
        let beside = Beside::default();
        let client = &self.0.client;
        let reply = client.ask_once(&method::TASKS_RESULT, &params, &beside, &self.0.options);
        // The error is that of the call which became the task.
        reply.await.map_err(|error| match error {
            CallError::Refused {
                source,
                status,
                retry_after,
                ..
            } => CallError::Refused {
                method: CALL,
                source,
                status,
                retry_after,
            },
            other => other,
        })
    }
}

impl Looked {
    fn read(reply: Reply) -> Result<Self, CallError> {
        complete(GET, &reply)?;
        let text = reply.result.as_str();
        let wrong = |error: ReadError| invalid(error.to_string());
        let (task, with) = match reply.rules.tasks {
            TaskDesign::Offered => (
                json::from_str(text).map_err(wrong)?,
                json::from_str(text).map_err(wrong)?,
            ),
            TaskDesign::Asked | TaskDesign::None => {
                let task: legacy::Task = json::from_str(text).map_err(wrong)?;
                (task.into(), With::default())
            }
        };
        Ok(Self { task, with, reply })
    }

    /// Everything in its types, for whoever looks by hand.
    pub(super) fn into_typed(self) -> Result<GetTaskResult, CallError> {
        match self.reply.rules.tasks {
            TaskDesign::Offered => self.reply.read(GET),
            TaskDesign::Asked | TaskDesign::None => Ok(GetTaskResult::new(self.task)),
        }
    }

    /// What the call answered, once the task has ended: since 2026-07-28.
    pub(super) fn into_outcome(self) -> Result<Reply, CallError> {
        match (self.task.status, self.with.result, self.with.error) {
            (TaskStatus::Completed, Some(result), _) => Ok(Reply {
                result: RawJson::from(String::from(Box::<str>::from(result))),
                kind: ResultType::Complete,
                rules: self.reply.rules,
                rounds: self.reply.rounds,
                watching: None,
            }),
            (TaskStatus::Failed, _, Some(source)) => Err(CallError::refused(CALL, source, None)),
            (status, ..) => Err(invalid(format!(
                "a task that is {status:?} without saying what came of it"
            ))),
        }
    }
}

fn invalid(reason: String) -> CallError {
    CallError::InvalidAnswer {
        method: GET,
        reason,
    }
}
