//! Calls of tools: the headers that go along, and what has to hold of the output.

use http::HeaderMap;
use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method::{self, Method};
use turnbuckle_protocol::types::{CallToolParams, CallToolResult, Tool};

use super::known::{KnownTools, Uses};
use super::{ToolOutput, mirrored};
use crate::call::Options;
use crate::client::{Beside, Client, Reply, complete};
use crate::error::CallError;
use crate::oddity::Oddity;
use crate::pages::Cursors;

const CALL: &Method = &method::TOOLS_CALL;

impl Client {
    /// Calls a tool with all that is known about it, and waits for the task that the call may become.
    pub(crate) async fn call_as_known(
        &self,
        params: CallToolParams,
        options: &Options,
    ) -> Result<ToolOutput, CallError> {
        let name = params.name.clone();
        let tasks = self.asks_for_tasks();
        let known = self.inner.tools.get(&name);
        let reply = if tasks && known.is_some_and(|tool| tool.only_as_task) {
            self.called_as_task(params, options).await?
        } else {
            let again = tasks.then(|| params.clone());
            match (self.send_call(params, options).await, again) {
                (Ok(reply), _) => self.settled(reply, &name, options).await?,
                (Err(error), Some(params)) => {
                    self.called_as_task_after(error, params, options).await?
                }
                (Err(error), None) => return Err(error),
            }
        };
        complete(CALL.name, &reply)?;
        self.output(Some(&name), reply.read(CALL.name)?)
    }

    /// Calls a tool with the headers that belong to its arguments; the reply may be a task.
    pub(crate) async fn send_call(
        &self,
        params: CallToolParams,
        options: &Options,
    ) -> Result<Reply, CallError> {
        self.ensure_pinned(&params.name).await?;
        match self.uses().mirrors {
            true => self.call_with_headers(params, options).await,
            false => self.call_plainly(params, HeaderMap::new(), options).await,
        }
    }

    /// Checks what a tool returned against what it promised, if that is known.
    pub(crate) fn output(
        &self,
        tool: Option<&str>,
        result: CallToolResult,
    ) -> Result<ToolOutput, CallError> {
        let broken = tool.and_then(|tool| {
            let reason = self.inner.tools.broken_promise(tool, &result)?;
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

    /// Remembers the tools of a page that was just listed, and leaves out those that cannot be used.
    ///
    /// What has changed since it was asked for binds nobody.
    pub(crate) fn learn_tools(&self, tools: &mut Vec<Tool>, changes: u64) {
        let mut uses = self.uses();
        uses.promises &= changes == self.inner.tools.changes();
        for changed in self.inner.tools.changed(tools, changes) {
            self.inner.hub.odd(Oddity::ToolChanged {
                tool: changed.tool,
                before: changed.before,
                now: changed.now,
                members: changed.members,
            });
        }
        for unusable in self.inner.tools.learn(tools, uses) {
            self.inner.hub.odd(Oddity::BadMark {
                tool: unusable.tool,
                error: unusable.error,
            });
        }
    }

    /// The same for a page that was kept, and learned when it came.
    pub(crate) fn sort_out_tools(&self, tools: &mut Vec<Tool>) {
        KnownTools::sort_out(tools, self.uses());
    }

    fn uses(&self) -> Uses {
        let rules = self.inner.rules();
        Uses {
            mirrors: rules.mirrored && self.inner.transport.is_http(),
            promises: rules.promises,
        }
    }

    /// Repeats marked arguments in headers. If the server wants others, its tools have changed: they are listed again,
    /// and the call is made once more.
    async fn call_with_headers(
        &self,
        params: CallToolParams,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let headers = self.param_headers(&params)?;
        let again = params.clone();
        match self.call_plainly(params, headers.clone(), options).await {
            Err(error) if is_mismatch(&error) => {
                self.look_up(&again.name).await;
                self.ensure_pinned(&again.name).await?;
                let changed = self.param_headers(&again)?;
                if changed == headers {
                    return Err(error);
                }
                self.call_plainly(again, changed, options).await
            }
            outcome => outcome,
        }
    }

    async fn call_plainly(
        &self,
        params: CallToolParams,
        headers: HeaderMap,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let name = params.name.clone();
        let beside = Beside {
            name: Some(&name),
            headers,
        };
        self.ask_in_rounds(CALL, params, beside, options).await
    }

    fn param_headers(&self, params: &CallToolParams) -> Result<HeaderMap, CallError> {
        let Some(tool) = self.inner.tools.get(&params.name) else {
            return Ok(HeaderMap::new());
        };
        mirrored::headers(&tool.marks, params.arguments.as_ref()).map_err(|stuck| {
            CallError::UnsendableArgument {
                tool: params.name.clone(),
                argument: stuck.argument,
                source: stuck.source,
            }
        })
    }

    /// Lists tools until this one is found; what cannot be listed stays as it was known.
    async fn look_up(&self, name: &str) {
        let mut seen = Cursors::default();
        let mut cursor = None;
        while seen.len() < self.inner.settings.limits.pages {
            let page = match self.list_tools(cursor).fresh().await {
                Ok(page) => page,
                Err(error) => {
                    tracing::debug!(%error, tool = name, "not found again");
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

fn is_mismatch(error: &CallError) -> bool {
    error
        .rpc()
        .is_some_and(|error| error.code == code::HEADER_MISMATCH)
}
