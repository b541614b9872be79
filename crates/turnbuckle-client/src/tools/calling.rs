//! Calls of tools: the headers that go along, and what has to hold of the output.

use std::ops::ControlFlow::{Break, Continue};

use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method::{self, Method};
use turnbuckle_protocol::types::{CallToolResult, ResultType, Tool};

use super::known::{KnownTools, Uses};
use super::{ToolCall, ToolOutput, mirrored};
use crate::call::Options;
use crate::client::{Beside, Client, Reply, complete, over_unless};
use crate::error::CallError;
use crate::message::HeaderList;
use crate::oddity::Oddity;
use crate::pages::Cursors;

const CALL: &Method = &method::TOOLS_CALL;

impl Client {
    /// Calls a tool with all that is known about it, and waits for the task that the call may become.
    pub(crate) async fn call_as_known(
        &self,
        call: &ToolCall,
        options: &Options,
    ) -> Result<ToolOutput, CallError> {
        let tool = call.tool();
        let tasks = self.asks_for_tasks();
        // What is rare lies on the heap: every call would be as large as the largest of its branches.
        let reply = if tasks && self.only_as_task(tool) {
            Box::pin(self.called_as_task(call.clone(), options)).await?
        } else {
            let reply = self.send_call(call, options).await;
            match over_unless(reply, |reply| may_be_task(reply, tasks)) {
                Break(reply) => reply?,
                Continue(reply) => Box::pin(self.settled(reply, call, options)).await?,
            }
        };
        complete(CALL.name, &reply)?;
        self.output(Some(tool), reply.read(CALL.name)?)
    }

    fn only_as_task(&self, tool: &str) -> bool {
        let known = self.inner.tools.get(tool);
        known.is_some_and(|tool| tool.only_as_task)
    }

    /// Calls a tool with the headers that belong to its arguments; the reply may be a task.
    pub(crate) async fn send_call(
        &self,
        call: &ToolCall,
        options: &Options,
    ) -> Result<Reply, CallError> {
        self.ensure_pinned(call.tool()).await?;
        let beside = self.beside(call)?;
        let reply = self.ask_in_rounds(CALL, call, &beside, options).await;
        let mirrors = self.uses().mirrors;
        match over_unless(reply, |reply| mirrors && is_mismatch(reply)) {
            Break(reply) => reply,
            Continue(reply) => {
                Box::pin(self.call_with_other_headers(reply, beside, call, options)).await
            }
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
        let unchanged = changes == self.inner.tools.changes();
        uses.promises &= unchanged;
        uses.reissues &= unchanged;
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
        let agreed = self.inner.agreed_now();
        let http = self.inner.transport.is_http();
        Uses {
            mirrors: agreed.rules.mirrored && http,
            promises: agreed.rules.promises,
            reissues: agreed.rules.reissues && http,
        }
    }

    /// The server wants other headers than were sent, so its tools have changed: they are listed again, and the call is
    /// made once more.
    async fn call_with_other_headers(
        &self,
        refused: Result<Reply, CallError>,
        sent: Beside<'_>,
        call: &ToolCall,
        options: &Options,
    ) -> Result<Reply, CallError> {
        self.look_up(call.tool()).await;
        self.ensure_pinned(call.tool()).await?;
        let changed = self.beside(call)?;
        match changed.headers == sent.headers {
            true => refused,
            false => self.ask_in_rounds(CALL, call, &changed, options).await,
        }
    }

    /// Repeats the name of the tool, and marked arguments, in headers.
    fn beside<'c>(&self, call: &'c ToolCall) -> Result<Beside<'c>, CallError> {
        let headers = match self.uses().mirrors {
            true => self.param_headers(call)?,
            false => HeaderList::new(),
        };
        let name = Some(call.tool());
        Ok(Beside { name, headers })
    }

    fn param_headers(&self, call: &ToolCall) -> Result<HeaderList, CallError> {
        let known = self.inner.tools.get(call.tool());
        let Some(tool) = known.filter(|tool| !tool.marks.is_empty()) else {
            return Ok(HeaderList::new());
        };
        mirrored::headers(&tool.marks, call.arguments().as_ref()).map_err(|stuck| {
            CallError::UnsendableArgument {
                tool: call.tool().to_owned(),
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

fn may_be_task(reply: &Result<Reply, CallError>, tasks: bool) -> bool {
    match reply {
        Ok(reply) => reply.kind == ResultType::Task,
        Err(_) => tasks,
    }
}

fn is_mismatch(reply: &Result<Reply, CallError>) -> bool {
    let error = reply.as_ref().err().and_then(CallError::rpc);
    error.is_some_and(|error| error.code == code::HEADER_MISMATCH)
}
