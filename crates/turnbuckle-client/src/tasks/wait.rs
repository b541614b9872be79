//! Waits for a task: looks at it now and then, and answers what the server asks meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::{Instant, sleep_until};
use turnbuckle_protocol::json;
use turnbuckle_protocol::types::{InputRequiredResult, TaskStatus, tasks::Task as Described};

use super::Task;
use super::look::{CALL, Looked};
use super::taken::Taken;
use crate::change::Change;
use crate::client::Reply;
use crate::error::CallError;
use crate::hub::Signal;
use crate::lifecycle::TaskDesign;
use crate::rounds::Question;

/// How often to look where the server does not say.
const USUAL: Duration = Duration::from_secs(1);
/// Nobody is looked at more often than this, whatever he says.
const SHORTEST: Duration = Duration::from_millis(100);
/// And nobody less often.
const LONGEST: Duration = Duration::from_secs(10 * 60);

impl Task {
    /// Waits for the end of the task, and returns what came of the call.
    pub(super) async fn outcome(&self) -> Result<Reply, CallError> {
        let ended = self.until_ended().await?;
        if ended.task.status == TaskStatus::Cancelled {
            return Err(CallError::TaskCancelled {
                reason: ended.task.status_message,
            });
        }
        match self.0.client.inner.rules().tasks {
            TaskDesign::Offered => ended.into_outcome(),
            TaskDesign::Asked | TaskDesign::None => self.fetch().await,
        }
    }

    /// Waits for the end of the task, and returns how it ended.
    pub(super) async fn until_ended(&self) -> Result<Looked, CallError> {
        // Listens before it looks, so that nothing is missed between two looks.
        let mut signals = self.0.client.inner.hub.signals.subscribe();
        loop {
            let looking = Instant::now();
            let mut looked = self.look().await?;
            match looked.task.status {
                status if status.is_final() => return Ok(looked),
                TaskStatus::InputRequired => {
                    let questions = looked.with.input_requests.take();
                    self.give_input(questions.unwrap_or_default()).await?;
                }
                _ => {}
            }
            self.check_lifetime(&looked.task)?;
            self.pause(looking, &looked.task, &mut signals).await;
        }
    }

    /// Gives a task the input that it waits for.
    async fn give_input(&self, questions: BTreeMap<String, Question>) -> Result<(), CallError> {
        match self.0.client.inner.rules().tasks {
            TaskDesign::Offered => self.answer_new(questions).await,
            // The server asks by requests, while the result is waited for.
            TaskDesign::Asked | TaskDesign::None => match self.fetch().await {
                Ok(_) | Err(CallError::Refused { .. } | CallError::TimedOut { .. }) => Ok(()),
                Err(error) => Err(error),
            },
        }
    }

    /// Answers the questions that were not asked before.
    async fn answer_new(&self, mut questions: BTreeMap<String, Question>) -> Result<(), CallError> {
        let rounds = self.0.options.max_rounds;
        if rounds == 0 {
            return Err(by_hand(&questions));
        }
        {
            let state = self.state();
            questions.retain(|key, _| !state.asked.contains(key));
            if questions.is_empty() {
                // Answered already, and the server has not noticed yet; or somebody is about to.
                return Ok(());
            }
            if state.rounds == rounds {
                let method = CALL;
                return Err(CallError::TooManyRounds { method, rounds });
            }
        }
        let taken = Taken::new(self, questions.keys().cloned());
        let responses = self.0.client.answer_each(CALL, questions).await?;
        self.update(responses).await?;
        taken.answered();
        self.state().rounds += 1;
        Ok(())
    }

    /// A task that is still there after its lifetime is not coming back.
    fn check_lifetime(&self, task: &Described) -> Result<(), CallError> {
        let lifetime = task.ttl_ms.map(Duration::from_millis);
        match lifetime.filter(|lifetime| self.0.begun.elapsed() > *lifetime) {
            Some(lifetime) => Err(CallError::TaskExpired { lifetime }),
            None => Ok(()),
        }
    }

    /// Waits until it is time for another look, or the server says that there is something to see.
    async fn pause(&self, looked: Instant, task: &Described, signals: &mut Receiver<Signal>) {
        let wished = task.poll_interval_ms.map_or(USUAL, Duration::from_millis);
        let next = looked + wished.clamp(SHORTEST, LONGEST);
        tokio::select! {
            () = sleep_until(next) => {}
            () = self.told(signals) => sleep_until(looked + SHORTEST).await,
        }
    }

    /// Waits until the server says that the task has ended or wants something.
    async fn told(&self, signals: &mut Receiver<Signal>) {
        loop {
            match signals.recv().await {
                Ok(Signal::Change(Change::Task(told))) => {
                    let status = told.task.status;
                    let matters = status.is_final() || status == TaskStatus::InputRequired;
                    if matters && told.task.task_id == self.0.id {
                        return;
                    }
                }
                Ok(Signal::End(_)) => return,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// The error of who answers no questions by himself; it brings them along.
fn by_hand(questions: &BTreeMap<String, Question>) -> CallError {
    let typed = serde_json::to_value(questions).map_err(|error| error.to_string());
    let typed = typed.and_then(|typed| json::from_value(&typed).map_err(|it| it.to_string()));
    match typed {
        Ok(questions) => CallError::InputRequired {
            method: CALL,
            questions: Box::new(InputRequiredResult::new(questions)),
        },
        Err(reason) => CallError::InvalidAnswer {
            method: CALL,
            reason,
        },
    }
}
