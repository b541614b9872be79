//! Calls that are answered later: how they are doing, what they ask, what came of them.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use turnbuckle_protocol::types::TaskStatus;

use crate::random::random_id;
use crate::{BoxFuture, StoreError};

/// Tasks, wherever they run and whoever asks for them.
///
/// Whoever runs a task and whoever answers for it need not be in one process: what one of them has to tell the other
/// is a change of the record. A task whose time is over is gone for every method here, whether or not it was swept.
pub trait Tasks: Send + Sync {
    /// Begins a task.
    ///
    /// Where there are as many as may be, the oldest finished task makes room: one of the same owner, else one of those
    /// that callers share. If none has finished: [`StoreError::Full`], or [`StoreError::TooMany`] if the owner has as many
    /// as one may have.
    fn create(&self, task: NewTask) -> BoxFuture<'_, Result<Arc<TaskRecord>, StoreError>>;

    /// Returns a task.
    fn load<'a>(
        &'a self,
        id: &'a TaskId,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>>;

    /// Changes one thing and returns the task as it is now, or nothing if it is gone or the change comes too late.
    ///
    /// Changes of one task are applied one after the other; none is lost. [`StoreError::TooLarge`],
    /// [`StoreError::TooMany`] and [`StoreError::Full`] leave the task as it was. To end with an error is never refused.
    fn update<'a>(
        &'a self,
        id: &'a TaskId,
        change: TaskChange,
    ) -> BoxFuture<'a, Result<Option<Arc<TaskRecord>>, StoreError>>;

    /// Returns tasks of one owner, oldest first: at most `limit`, those with a number above `after`.
    fn list<'a>(
        &'a self,
        owner: &'a str,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<TaskRecord>>, StoreError>>;

    /// Drops tasks whose time is over.
    ///
    /// They are out of reach without it; calling it now and then returns their memory sooner.
    fn sweep(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

random_id! {
    /// Names a task: 144 random bits, as text 24 visible ASCII characters.
    ///
    /// `Debug` shows only the beginning, because whoever knows all of it may be taken for its owner.
    TaskId
}

/// A task that is about to begin.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Who may use it; a name that means something to the server only.
    pub owner: Arc<str>,
    /// Whether callers that cannot be told apart share this owner: then it has no limit of its own.
    pub shared: bool,
    /// How long it is kept.
    pub ttl: Duration,
    /// How long a client should wait between two looks at it.
    pub poll_interval: Duration,
}

/// What is known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its name.
    pub id: TaskId,
    /// Its place among all tasks, in the order they began.
    pub number: u64,
    /// How often it has changed: of two records of one task, the one with more changes is the newer.
    pub changes: u64,
    /// Who may use it.
    pub owner: Arc<str>,
    /// How it is doing.
    pub status: TaskStatus,
    /// How it is doing, in words.
    pub message: Option<String>,
    /// When it began.
    pub created: SystemTime,
    /// When it last changed.
    pub updated: SystemTime,
    /// How long it is kept, from its beginning.
    pub ttl: Duration,
    /// How long a client should wait between two looks at it.
    pub poll_interval: Duration,
    /// What it wants to know, in the order it asked: keys, and questions as JSON.
    pub questions: Vec<(String, Bytes)>,
    /// What it was told: keys, and answers as JSON.
    pub answers: Vec<(String, TaskAnswer)>,
    /// What came of it.
    pub outcome: Option<TaskOutcome>,
}

/// The answer to a question of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskAnswer {
    /// What the client said, as JSON.
    Given(Bytes),
    /// The error that the client answered with, as JSON.
    Refused(Bytes),
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// The result of the call, as JSON.
    Result(Bytes),
    /// The error of the call, as JSON.
    Error(Bytes),
}

/// One change of a task.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskChange {
    /// It tells how it is doing.
    Say(String),
    /// It wants to know something, under a key that it used for nothing else.
    Ask {
        /// The key.
        key: String,
        /// The question, as JSON.
        question: Bytes,
    },
    /// It no longer wants to know.
    Withdraw {
        /// The key of the question.
        key: String,
    },
    /// It is told something it wants to know.
    Answer {
        /// The key of the question.
        key: String,
        /// The answer.
        answer: TaskAnswer,
    },
    /// It has read an answer, which need not be kept.
    Heard {
        /// The key of the question.
        key: String,
    },
    /// It ends.
    End {
        /// How.
        status: TaskStatus,
        /// In words.
        message: Option<String>,
        /// With what.
        outcome: TaskOutcome,
    },
}

impl TaskRecord {
    /// A task as it begins.
    pub fn new(id: TaskId, number: u64, task: NewTask) -> Self {
        let now = SystemTime::now();
        Self {
            id,
            number,
            changes: 0,
            owner: task.owner,
            status: TaskStatus::Working,
            message: None,
            created: now,
            updated: now,
            ttl: task.ttl,
            poll_interval: task.poll_interval,
            questions: Vec::new(),
            answers: Vec::new(),
            outcome: None,
        }
    }

    /// Changes one thing; says whether there was anything to change. Nothing changes a task that has ended.
    pub fn apply(&mut self, change: TaskChange) -> bool {
        if self.status.is_final() {
            return false;
        }
        let changed = match change {
            TaskChange::Say(message) => self.message.replace(message.clone()) != Some(message),
            TaskChange::Ask { key, question } => self.ask(key, question),
            TaskChange::Withdraw { key } => self.close(&key),
            TaskChange::Answer { key, answer } => {
                let open = self.close(&key);
                if open {
                    self.answers.push((key, answer));
                }
                open
            }
            TaskChange::Heard { key } => {
                let told = self.answers.iter_mut().find(|(told, _)| *told == key);
                // The key stays: it was used.
                told.map(|(_, answer)| *answer = TaskAnswer::Given(Bytes::new()))
                    .is_some()
            }
            TaskChange::End {
                status,
                message,
                outcome,
            } => {
                self.status = status;
                self.message = message;
                self.outcome = Some(outcome);
                self.questions.clear();
                self.answers.clear();
                true
            }
        };
        if changed {
            self.changes += 1;
            self.updated = SystemTime::now();
        }
        changed
    }

    fn ask(&mut self, key: String, question: Bytes) -> bool {
        let used = self.questions.iter().any(|(open, _)| *open == key)
            || self.answers.iter().any(|(told, _)| *told == key);
        if used {
            return false;
        }
        self.questions.push((key, question));
        self.status = TaskStatus::InputRequired;
        true
    }

    /// Takes a question off the list; says whether it was there.
    fn close(&mut self, key: &str) -> bool {
        let before = self.questions.len();
        self.questions.retain(|(open, _)| open != key);
        if self.questions.is_empty() {
            self.status = TaskStatus::Working;
        }
        self.questions.len() < before
    }

    /// The bytes that clients and handlers made it hold.
    pub fn weight(&self) -> usize {
        let questions = self.questions.iter().map(|(key, it)| key.len() + it.len());
        let answers = self.answers.iter().map(|(key, answer)| {
            let (TaskAnswer::Given(it) | TaskAnswer::Refused(it)) = answer;
            key.len() + it.len()
        });
        let outcome = self.outcome.as_ref().map_or(0, |outcome| {
            let (TaskOutcome::Result(it) | TaskOutcome::Error(it)) = outcome;
            it.len()
        });
        self.message.as_ref().map_or(0, String::len)
            + questions.sum::<usize>()
            + answers.sum::<usize>()
            + outcome
    }

    /// The answer to a question, if it is there.
    pub fn answer(&self, key: &str) -> Option<&TaskAnswer> {
        let mut answers = self.answers.iter();
        answers.find_map(|(told, answer)| (told == key).then_some(answer))
    }
}
