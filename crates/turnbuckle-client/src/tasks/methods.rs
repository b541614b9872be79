//! What a client does with tasks.

use std::time::Duration;

use serde::Serialize;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{
    PaginatedParams,
    tasks::{Task as Described, legacy::ListTasksResult},
};

use super::{Started, Task};
use crate::call::{Call, Options};
use crate::client::{Beside, Client};
use crate::error::CallError;
use crate::lifecycle::TaskDesign;
use crate::pages::Pages;
use crate::tools::ToolCall;

const LIST: &str = method::TASKS_LIST.name;

impl Client {
    /// Calls a tool, and returns as soon as there is a result or a task.
    ///
    /// A server of 2025-11-25 is asked for a task if it and the tool allow that; since then the server decides by itself.
    /// Where there are no tasks, or none is made, the call is an ordinary one.
    ///
    /// ```no_run
    /// # async fn run(client: turnbuckle_client::Client) -> Result<(), turnbuckle_client::CallError> {
    /// use serde_json::json;
    /// use turnbuckle_client::Started;
    ///
    /// match client.call_tool_as_task("render", json!({ "frames": 500 })).await? {
    ///     Started::Task(task) => println!("{}: {:?}", task.id(), task.wait().await?.status),
    ///     Started::Done(output) => println!("{}", output.text()),
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_tool_as_task(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<Started> {
        let call = ToolCall::new(name, &arguments);
        Call::new(self, async move |client: Client, options: Options| {
            client.begin_task(call?, options).await
        })
    }

    /// Comes back to a task that was begun before, perhaps over another connection.
    pub fn task(&self, id: impl Into<String>) -> Task {
        Task::named(self, id.into())
    }

    /// Lists the tasks of this client, page by page. Only 2025-11-25 can.
    pub fn tasks(&self) -> Pages<Described> {
        self.pages(&method::TASKS_LIST, |client, cursor| {
            let page = client.list_tasks(cursor);
            async move {
                let page = page.await?;
                let tasks = page.tasks.into_iter().map(Described::from);
                Ok((tasks.collect(), page.next_cursor))
            }
        })
    }

    /// Lists one page of tasks. Only 2025-11-25 can.
    pub fn list_tasks(&self, cursor: Option<String>) -> Call<ListTasksResult> {
        let mut params = PaginatedParams::new();
        params.cursor = cursor;
        Call::new(self, async move |client: Client, options: Options| {
            if !client.lists_tasks() {
                return Err(CallError::NotOffered {
                    method: LIST,
                    capability: "tasks.list",
                });
            }
            let beside = Beside::default();
            client
                .ask(&method::TASKS_LIST, params, beside, &options)
                .await
        })
    }

    fn lists_tasks(&self) -> bool {
        let server = self.server();
        let tasks = server.capabilities.tasks.as_ref();
        self.inner.rules().tasks == TaskDesign::Asked
            && tasks.is_some_and(|tasks| tasks.list.is_some())
    }
}

impl Call<Started> {
    /// Says how long the server should keep the task and its result. Only 2025-11-25 can be told.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.options.task_lifetime = Some(lifetime);
        self
    }
}
