//! Tasks: calls that are answered later.
//!
//! 2025-11-25 lets the client ask for a task and fetch its result; since 2026-07-28 the server decides, and looking at a
//! task brings its result. Both are one [`Task`] here. A call that becomes a task without being asked is waited for as
//! if it had not.

mod abandoned;
mod begin;
mod cancel;
mod look;
mod methods;
mod taken;
mod wait;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use turnbuckle_protocol::types::{
    InputResponses,
    tasks::{GetTaskResult, Task as Described},
};

use crate::call::Options;
use crate::client::Client;
use crate::error::CallError;
use crate::progress::Watching;
use crate::tools::ToolOutput;

pub(crate) use abandoned::abandon;

/// A call that is answered later: a handle on the server's work.
///
/// Dropping the handle leaves the work alone; [`cancel`](Self::cancel) ends it. A task outlives the connection: keep its
/// [`id`](Self::id), and come back with [`Client::task`]. Clones are cheap, and know what the others know.
#[derive(Clone)]
pub struct Task(Arc<Inner>);

struct Inner {
    client: Client,
    id: String,
    /// The tool that was called, as far as that is known.
    tool: Option<String>,
    options: Options,
    begun: Instant,
    state: Mutex<State>,
    /// The progress of the task comes under the token of the call that it was.
    _watching: Option<Watching>,
}

/// A task that was just created.
struct Created {
    described: Described,
    watching: Option<Watching>,
}

/// What is known of a task.
#[derive(Debug, Default)]
struct State {
    described: Option<Described>,
    /// The questions that are open, as of the last look.
    open: HashSet<String>,
    /// The questions that were asked: none is asked twice.
    asked: HashSet<String>,
    rounds: usize,
}

impl Task {
    /// A task that nothing is known of but its name.
    fn named(client: &Client, id: String) -> Self {
        Self(Arc::new(Inner {
            client: client.clone(),
            id,
            tool: None,
            options: Options::of(client),
            begun: Instant::now(),
            state: Mutex::default(),
            _watching: None,
        }))
    }

    /// A task that a call of a tool became.
    fn created(client: &Client, created: Created, tool: String, options: Options) -> Self {
        let described = created.described;
        let id = described.task_id.clone();
        let state = State {
            described: Some(described),
            ..State::default()
        };
        Self(Arc::new(Inner {
            client: client.clone(),
            id,
            tool: Some(tool),
            options,
            begun: Instant::now(),
            state: Mutex::new(state),
            _watching: created.watching,
        }))
    }

    /// Returns the name of the task. Whoever knows it may ask for the result: keep it to yourself.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns how the task was doing when the server last said so.
    pub fn last_seen(&self) -> Option<Described> {
        self.state().described.clone()
    }

    /// Looks at the task once.
    pub async fn poll(&self) -> Result<GetTaskResult, CallError> {
        let looked = self.look().await?;
        looked.into_typed()
    }

    /// Waits until the task has ended, and returns how.
    ///
    /// What the server asks meanwhile is answered by the callbacks of the client. There is no end to the waiting but the
    /// lifetime that the server gave the task.
    pub async fn wait(&self) -> Result<Described, CallError> {
        self.until_ended().await.map(|looked| looked.task)
    }

    /// Waits until the task has ended, and returns what the call answered.
    pub async fn result(&self) -> Result<ToolOutput, CallError> {
        let result = self.outcome().await?.read(look::CALL)?;
        self.0.client.output(self.0.tool.as_deref(), result)
    }

    /// Answers questions by hand, where the client answers none by itself. Only what is open is sent.
    ///
    /// For 2026-07-28; servers before it ask by requests, which only callbacks answer.
    pub async fn answer(&self, responses: InputResponses) -> Result<(), CallError> {
        self.update(responses).await
    }

    /// Asks the server to end the task.
    ///
    /// Whether and when it does is its decision; [`wait`](Self::wait) tells.
    pub async fn cancel(&self) -> Result<(), CallError> {
        cancel::cancel(&self.0.client, &self.0.id, &self.0.options).await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.state().described.as_ref().map(|task| task.status);
        f.debug_struct("Task")
            .field("status", &status)
            .finish_non_exhaustive()
    }
}

/// What a server made of a call that may become a task.
#[derive(Debug)]
#[non_exhaustive]
pub enum Started {
    /// It answered at once.
    Done(ToolOutput),
    /// It answers later.
    Task(Task),
}

impl Started {
    /// Waits for the answer, if it is not there.
    pub async fn result(self) -> Result<ToolOutput, CallError> {
        match self {
            Self::Done(result) => Ok(result),
            Self::Task(task) => task.result().await,
        }
    }
}
