//! The public functions of a client: its connection, and the methods of the protocol, one function each.

use std::{collections::BTreeMap, future::ready, sync::Arc};

use serde::Serialize;
use turnbuckle_protocol::{
    method::{self, Method},
    types::{
        CompleteParams, CompleteResult, Completion, EmptyParams, EmptyResult, GetPromptParams,
        GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, LogLevel, PaginatedParams, Prompt,
        ReadResourceParams, ReadResourceResult, Resource, ResourceTemplate, SetLevelParams,
        SubscribeParams, SubscriptionFilter, Tool,
        tasks::{Task as TaskInfo, legacy::ListTasksResult},
    },
};

use crate::{
    builder::ClientBuilder,
    cache::{ResponseOrigin, request_page, request_resource},
    call::{Call, CallOptions, Pages},
    client::{Client, TASK_CANCEL_TIMEOUT, list_page::ListPage, require_complete},
    error::CallError,
    lifecycle::TaskDesign,
    subscription::{self, Subscription},
    target::ServerInfo,
    tasks::{CallOutcome, Task, create::begin_task},
    tools::{ToolCall, ToolOutput},
    transport::{encode::ToRevision, stdio::Process},
};

impl Client {
    /// Creates a builder for a client with this name and version.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// Creates a builder for a client with the name of this library.
    pub(crate) fn default_builder() -> ClientBuilder {
        Self::builder("turnbuckle", env!("CARGO_PKG_VERSION"))
    }

    /// Returns the server's description of itself.
    pub fn server(&self) -> Arc<ServerInfo> {
        Arc::clone(&self.inner.negotiated.load().server)
    }

    /// Returns the server's child process, if the server is one.
    pub fn process(&self) -> Option<Process> {
        self.inner.transport.process()
    }

    /// Closes the connection. Pending calls fail.
    ///
    /// First waits, for at most a few seconds, until cancellations of dropped calls are sent.
    pub async fn close(&self) {
        self.inner
            .router
            .task_cancellations
            .wait(TASK_CANCEL_TIMEOUT)
            .await;
        self.inner.transport.close(&self.inner.router).await;
    }

    /// Calls a tool. The arguments are any value that serializes to a JSON object.
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<ToolOutput> {
        match ToolCall::new(name, &arguments) {
            Ok(call) => Call::new(
                self,
                move |client: Client, options: CallOptions| async move {
                    client.call_and_validate(&call, &options).await
                },
            ),
            Err(error) => Call::new(self, |_, _| ready(Err(error))),
        }
    }

    /// Lists the tools, page by page.
    pub fn tools(&self) -> Pages<Tool> {
        self.pages(&method::TOOLS_LIST, |client, cursor| {
            let page = client.list_tools(cursor);
            async move { page.await.map(|page| (page.tools, page.next_cursor)) }
        })
    }

    /// Lists one page of tools.
    ///
    /// A malformed tool is left out; [`Anomaly::InvalidListItem`](crate::Anomaly::InvalidListItem) gives the reason. The
    /// same holds for resources, resource templates and prompts.
    ///
    /// On HTTP since 2026-07-28, a tool with an invalid `x-mcp-header` is left out, because it cannot be called;
    /// [`Anomaly::InvalidParamHeader`](crate::Anomaly::InvalidParamHeader) gives the reason. A tool that differs from
    /// the previous listing is reported as [`Anomaly::ToolChanged`](crate::Anomaly::ToolChanged).
    pub fn list_tools(&self, cursor: Option<String>) -> Call<ListToolsResult> {
        Call::new(self, async move |client: Client, options: CallOptions| {
            let changes = client.inner.tools.changes();
            let page = request_page(&client, &method::TOOLS_LIST, cursor, &options);
            let (mut page, origin): (ListToolsResult, _) = page.await?;
            match origin {
                ResponseOrigin::Server => client.remember_tools(&mut page.tools, changes),
                ResponseOrigin::Cache => client.drop_unusable_tools(&mut page.tools),
            }
            Ok(page)
        })
    }

    /// Lists the resources, page by page.
    pub fn resources(&self) -> Pages<Resource> {
        self.pages(&method::RESOURCES_LIST, |client, cursor| {
            let page = client.list_resources(cursor);
            async move { page.await.map(|page| (page.resources, page.next_cursor)) }
        })
    }

    /// Lists one page of resources.
    pub fn list_resources(&self, cursor: Option<String>) -> Call<ListResourcesResult> {
        self.page(&method::RESOURCES_LIST, cursor)
    }

    /// Lists the resource templates, page by page.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        self.pages(&method::RESOURCES_TEMPLATES_LIST, |client, cursor| {
            let page = client.list_resource_templates(cursor);
            async move {
                page.await
                    .map(|page| (page.resource_templates, page.next_cursor))
            }
        })
    }

    /// Lists one page of resource templates.
    pub fn list_resource_templates(
        &self,
        cursor: Option<String>,
    ) -> Call<ListResourceTemplatesResult> {
        self.page(&method::RESOURCES_TEMPLATES_LIST, cursor)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        let params = ReadResourceParams::new(uri);
        Call::new(self, async move |client: Client, options: CallOptions| {
            request_resource(&client, params, &options).await
        })
    }

    /// Subscribes to a resource on a legacy server; [`listen`](Self::listen) works in both eras.
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<()> {
        self.acknowledged(&method::RESOURCES_SUBSCRIBE, SubscribeParams::new(uri))
    }

    /// Ends the subscription of [`subscribe`](Self::subscribe).
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<()> {
        self.acknowledged(&method::RESOURCES_UNSUBSCRIBE, SubscribeParams::new(uri))
    }

    /// Lists the prompts, page by page.
    pub fn prompts(&self) -> Pages<Prompt> {
        self.pages(&method::PROMPTS_LIST, |client, cursor| {
            let page = client.list_prompts(cursor);
            async move { page.await.map(|page| (page.prompts, page.next_cursor)) }
        })
    }

    /// Lists one page of prompts.
    pub fn list_prompts(&self, cursor: Option<String>) -> Call<ListPromptsResult> {
        self.page(&method::PROMPTS_LIST, cursor)
    }

    /// Gets a prompt, with these arguments.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Call<GetPromptResult> {
        let mut params = GetPromptParams::new(name);
        let arguments = arguments.into_iter();
        let arguments = arguments.map(|(name, value)| (name.into(), value.into()));
        let arguments: BTreeMap<_, _> = arguments.collect();
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        Call::new(self, async move |client: Client, options: CallOptions| {
            let method = &method::PROMPTS_GET;
            let name = params.name.clone();
            let mut request = client.new_request(method, &options).named(&name);
            let received = client.send_with_input(&mut request, &params, &options);
            let received = received.await?;
            require_complete(method.name, &received)?;
            received.read(method.name)
        })
    }

    /// Completes a prompt argument or a resource template variable.
    pub fn complete(&self, mut params: CompleteParams) -> Call<Completion> {
        let meta = std::mem::take(&mut params.meta);
        let call = Call::new(self, async move |client: Client, options: CallOptions| {
            let method = &method::COMPLETION_COMPLETE;
            let result: CompleteResult = client.request(method, params, &options).await?;
            Ok(result.completion)
        });
        call.meta(meta)
    }

    /// Checks that the server responds.
    ///
    /// 2026-07-28 has no `ping`, so `server/discover` is sent instead.
    pub fn ping(&self) -> Call<()> {
        if self.inner.rules().has_ping {
            self.acknowledged(&method::PING, EmptyParams::default())
        } else {
            self.acknowledged(&method::SERVER_DISCOVER, EmptyParams::default())
        }
    }

    /// Sets the minimum level of log messages.
    ///
    /// A legacy server stores the level in the session; since 2026-07-28 it is sent with every later request.
    pub fn set_log_level(&self, level: LogLevel) -> Call<()> {
        Call::new(self, async move |client: Client, options: CallOptions| {
            if !client.inner.rules().log_level_per_request {
                let call =
                    client.acknowledged(&method::LOGGING_SET_LEVEL, SetLevelParams::new(level));
                call.with(options).await?;
            }
            client.inner.store_log_level(level);
            Ok(())
        })
    }

    /// Subscribes to changes; returns once the server has acknowledged the subscription.
    ///
    /// After a lost connection it subscribes again, and reports the interruption.
    pub fn listen(&self, filter: SubscriptionFilter) -> Call<Subscription> {
        Call::new(self, async move |client: Client, options: CallOptions| {
            subscription::open(client, filter, options).await
        })
    }

    /// Calls a tool, and returns as soon as there is a result or a task.
    ///
    /// On 2025-11-25 the client requests a task if the server and the tool allow it; since 2026-07-28 the server
    /// decides. If no task is created, the call is an ordinary one.
    ///
    /// ```no_run
    /// # async fn run(client: turnbuckle_client::Client) -> Result<(), turnbuckle_client::CallError> {
    /// use serde_json::json;
    /// use turnbuckle_client::CallOutcome;
    ///
    /// match client.call_tool_as_task("render", json!({ "frames": 500 })).await? {
    ///     CallOutcome::Task(task) => println!("{}: {:?}", task.id(), task.wait().await?.status),
    ///     CallOutcome::Finished(output) => println!("{}", output.text()),
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn call_tool_as_task(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<CallOutcome> {
        let call = ToolCall::new(name, &arguments);
        Call::new(self, async move |client: Client, options: CallOptions| {
            begin_task(&client, call?, options).await
        })
    }

    /// Returns a handle to an existing task, possibly from another connection.
    pub fn task(&self, id: impl Into<String>) -> Task {
        Task::with_id(self, id.into())
    }

    /// Lists the tasks of this client, page by page. Only on 2025-11-25.
    pub fn tasks(&self) -> Pages<TaskInfo> {
        self.pages(&method::TASKS_LIST, |client, cursor| {
            let page = client.list_tasks(cursor);
            async move {
                let page = page.await?;
                let tasks = page.tasks.into_iter().map(TaskInfo::from);
                Ok((tasks.collect(), page.next_cursor))
            }
        })
    }

    /// Lists one page of tasks. Only on 2025-11-25.
    pub fn list_tasks(&self, cursor: Option<String>) -> Call<ListTasksResult> {
        let mut params = PaginatedParams::new();
        params.cursor = cursor;
        Call::new(self, async move |client: Client, options: CallOptions| {
            if !client.lists_tasks() {
                return Err(CallError::CapabilityNotAdvertised {
                    method: method::TASKS_LIST.name,
                    capability: "tasks.list",
                });
            }
            client.request(&method::TASKS_LIST, params, &options).await
        })
    }

    fn lists_tasks(&self) -> bool {
        let server = self.server();
        let tasks = server.capabilities.tasks.as_ref();
        self.inner.rules().tasks == TaskDesign::ClientRequested
            && tasks.is_some_and(|tasks| tasks.list.is_some())
    }

    /// Sends a request with an empty result.
    fn acknowledged<P>(&self, method: &'static Method, params: P) -> Call<()>
    where
        P: ToRevision + Send + Sync + 'static,
    {
        Call::new(self, async move |client: Client, options: CallOptions| {
            let result = client.request(method, params, &options);
            result.await.map(|EmptyResult { .. }| ())
        })
    }

    fn page<R>(&self, method: &'static Method, cursor: Option<String>) -> Call<R>
    where
        R: ListPage + Send + 'static,
    {
        Call::new(self, async move |client: Client, options: CallOptions| {
            let page = request_page(&client, method, cursor, &options).await;
            page.map(|(page, _)| page)
        })
    }

    pub(crate) fn pages<T, F>(
        &self,
        method: &'static Method,
        fetch: impl Fn(&Client, Option<String>) -> F + Send + Sync + 'static,
    ) -> Pages<T>
    where
        F: Future<Output = Result<crate::call::ListPage<T>, CallError>> + Send + 'static,
    {
        let limits = &self.inner.settings.limits;
        let bounds = (limits.max_list_items, limits.max_list_pages);
        let client = self.clone();
        Pages::new(method.name, bounds, move |cursor| {
            Box::pin(fetch(&client, cursor))
        })
    }
}
