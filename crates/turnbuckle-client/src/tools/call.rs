//! Tool calls: parameter headers, pins, and validation of the output.

use std::ops::ControlFlow::{Break, Continue};

use turnbuckle_protocol::{
    jsonrpc::code,
    method::{self, Method},
    types::{CallToolResult, ResultType, Tool},
};

use crate::{
    call::{CallOptions, SeenCursors},
    client::{Client, ReceivedResult, RequestExtras, continue_if, require_complete},
    error::CallError,
    inbound::observers::Anomaly,
    round_trips::request_with_input,
    tasks::create::{call_as_task, requests_tasks, resolve_task},
    tools::{
        ToolCall, ToolOutput,
        digest::ToolDigest,
        param_headers,
        tool_cache::{ToolCache, ToolPolicy},
    },
    transport::encode::HeaderList,
};

const CALL: &Method = &method::TOOLS_CALL;

impl Client {
    /// Calls a tool, waits for the task that the call may create, and validates the output.
    pub(crate) async fn call_and_validate(
        &self,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<ToolOutput, CallError> {
        let tool = call.tool();
        let tasks = requests_tasks(self);
        // Rare branches are boxed, because the future of every call is as large as its largest branch.
        let received = if tasks && self.only_as_task(tool) {
            Box::pin(call_as_task(self, call.clone(), options)).await?
        } else {
            let received = self.send_tool_call(call, options).await;
            match continue_if(received, |received| may_become_task(received, tasks)) {
                Break(received) => received?,
                Continue(received) => Box::pin(resolve_task(self, received, call, options)).await?,
            }
        };
        require_complete(CALL.name, &received)?;
        self.output(Some(tool), received.read(CALL.name)?)
    }

    fn only_as_task(&self, tool: &str) -> bool {
        let cached_tool = self.inner.tools.get(tool);
        cached_tool.is_some_and(|tool| tool.only_as_task)
    }

    /// Sends a tool call with its parameter headers; the result may be a task.
    pub(crate) async fn send_tool_call(
        &self,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        self.ensure_pinned(call.tool()).await?;
        let extras = self.request_extras(call)?;
        let received = request_with_input(self, CALL, call, &extras, options).await;
        let param_headers_sent = self.tool_policy().param_headers_sent;
        match continue_if(received, |received| {
            param_headers_sent && is_header_mismatch(received)
        }) {
            Break(received) => received,
            Continue(received) => {
                Box::pin(self.retry_with_new_headers(received, extras, call, options)).await
            }
        }
    }

    /// Validates the output of a tool against its output schema, if one is cached.
    pub(crate) fn output(
        &self,
        tool: Option<&str>,
        result: CallToolResult,
    ) -> Result<ToolOutput, CallError> {
        let broken = tool.and_then(|tool| {
            let reason = self.inner.tools.check_output(tool, &result)?;
            Some((tool.to_owned(), reason))
        });
        let output = ToolOutput::from(result);
        match broken {
            None => Ok(output),
            Some((tool, reason)) => Err(CallError::InvalidOutput {
                tool,
                reason,
                output: Box::new(output),
            }),
        }
    }

    /// Caches the tools of a page that was just listed, and removes those that cannot be used.
    ///
    /// Output schemas of a page that is already outdated are not cached.
    pub(crate) fn remember_tools(&self, tools: &mut Vec<Tool>, changes: u64) {
        let mut tool_policy = self.tool_policy();
        let unchanged = changes == self.inner.tools.changes();
        tool_policy.validate_output &= unchanged;
        tool_policy.reissue_lost_requests &= unchanged;
        for changed in self.inner.tools.changed(tools, changes) {
            self.inner.router.report_anomaly(Anomaly::ToolChanged {
                tool: changed.tool,
                before: changed.before,
                now: changed.now,
                members: changed.members,
            });
        }
        for unusable in self.inner.tools.insert_all(tools, tool_policy) {
            self.inner
                .router
                .report_anomaly(Anomaly::InvalidParamHeader {
                    tool: unusable.tool,
                    error: unusable.error,
                });
        }
    }

    /// Removes the tools that cannot be used from a cached page.
    pub(crate) fn drop_unusable_tools(&self, tools: &mut Vec<Tool>) {
        ToolCache::drop_unusable(tools, self.tool_policy());
    }

    fn tool_policy(&self) -> ToolPolicy {
        let negotiated = self.inner.negotiated_ref();
        let http = self.inner.transport.is_http();
        ToolPolicy {
            param_headers_sent: negotiated.rules.mcp_headers && http,
            validate_output: negotiated.rules.validate_output,
            reissue_lost_requests: negotiated.rules.reissue_lost_requests && http,
        }
    }

    /// Lists the tools again and retries the call, because the server rejected its headers: its tools have changed.
    async fn retry_with_new_headers(
        &self,
        rejected: Result<ReceivedResult, CallError>,
        sent: RequestExtras<'_>,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<ReceivedResult, CallError> {
        self.refresh_tool(call.tool()).await;
        self.ensure_pinned(call.tool()).await?;
        let changed = self.request_extras(call)?;
        if changed.headers == sent.headers {
            rejected
        } else {
            request_with_input(self, CALL, call, &changed, options).await
        }
    }

    /// Returns the name header and the parameter headers of a call.
    fn request_extras<'c>(&self, call: &'c ToolCall) -> Result<RequestExtras<'c>, CallError> {
        let headers = if self.tool_policy().param_headers_sent {
            self.param_headers(call)?
        } else {
            HeaderList::new()
        };
        let name = Some(call.tool());
        Ok(RequestExtras { name, headers })
    }

    fn param_headers(&self, call: &ToolCall) -> Result<HeaderList, CallError> {
        let cached_tool = self.inner.tools.get(call.tool());
        let Some(tool) = cached_tool.filter(|tool| !tool.param_headers.is_empty()) else {
            return Ok(HeaderList::new());
        };
        param_headers::headers(&tool.param_headers, call.arguments().as_ref()).map_err(|error| {
            CallError::UnsendableArgument {
                tool: call.tool().to_owned(),
                argument: error.argument,
                source: error.source,
            }
        })
    }

    /// Lists tools until this one is found; if listing fails, the cached tool stays.
    async fn refresh_tool(&self, name: &str) {
        let mut seen = SeenCursors::default();
        let mut cursor = None;
        while seen.len() < self.inner.settings.limits.max_list_pages {
            let page = match self.list_tools(cursor).bypass_cache().await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, tool = name, "the tool was not listed again");
                    return;
                }
            };
            if page.tools.iter().any(|tool| tool.name == name) {
                return;
            }
            cursor = page.next_cursor.filter(|next| seen.insert(next));
            if cursor.is_none() {
                return;
            }
        }
    }
}

fn may_become_task(received: &Result<ReceivedResult, CallError>, tasks: bool) -> bool {
    match received {
        Ok(received) => received.kind == ResultType::Task,
        Err(_) => tasks,
    }
}

fn is_header_mismatch(received: &Result<ReceivedResult, CallError>) -> bool {
    let error = received.as_ref().err().and_then(CallError::rpc);
    error.is_some_and(|error| error.code == code::HEADER_MISMATCH)
}

impl Client {
    /// Returns an error if a tool does not match its pin.
    ///
    /// The most recent listing counts, because that is what the caller saw. The tools are listed if this one never was,
    /// or if the server announced a change.
    pub(super) async fn ensure_pinned(&self, tool: &str) -> Result<(), CallError> {
        let Some(&pinned) = self.inner.settings.pinned.get(tool) else {
            return Ok(());
        };
        let listed = match self.inner.tools.digest(tool) {
            Some(digest) => Some(digest),
            None => Box::pin(self.relist(tool)).await?,
        };
        if listed == Some(pinned) {
            Ok(())
        } else {
            Err(CallError::PinMismatch {
                tool: tool.to_owned(),
                pinned,
                listed,
            })
        }
    }

    async fn relist(&self, name: &str) -> Result<Option<ToolDigest>, CallError> {
        let mut tools = self.tools();
        while let Some(tool) = tools.next().await {
            let tool = tool?;
            if tool.name == name {
                return Ok(Some(ToolDigest::for_tool(&tool)));
            }
        }
        Ok(None)
    }
}
