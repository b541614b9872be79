//! `tools/call`: finds the tool, checks its parameter headers, runs it as a call or a task, and builds the result.

use std::{error::Error, sync::Arc, time::Duration};

use turnbuckle_protocol::{
    RpcError,
    codec::headers,
    jsonrpc::{Params, RawObject, Truncated},
};

use super::{Dispatch, required};
use crate::{
    Tool,
    catalog::scopes::RequestDenied,
    context::Context,
    input::RequestIdentity,
    lifecycle::{
        TaskModel,
        stateless::{RequestHeaders, header_mismatch},
    },
    middleware,
    request::{
        BoxFuture, DispatchOutcome, RequestContext, ResponseResult, RunningRequest,
        response::ResponseWriter,
    },
    tasks::{self, CallMode},
    tools::{ToolError, ToolParamHeader, ToolResult, internal_failure},
};

impl Dispatch<'_, '_> {
    pub(super) fn call_tool(self) -> RunningRequest {
        let (tool, arguments, mode) = match self.find_tool() {
            Ok(resolved) => resolved,
            Err(denied) => return self.deny(denied),
        };
        let may_become_task = match mode {
            CallMode::Direct => false,
            CallMode::CallThenTask => true,
            CallMode::TasksUnsupported => {
                let message = format!(
                    "`{}` runs only as a task, and the client's revision does not have tasks",
                    tool.name()
                );
                return self
                    .respond_now(|call| tool_result(call, &tool, Ok(ToolResult::error(message))));
            }
            CallMode::Task(ttl) => return self.start_task(tool, arguments, ttl),
        };
        let about = tool.clone();
        let identity = |_: &Params<'_>| RequestIdentity {
            method: "tools/call",
            name: about.definition.name.clone(),
            arguments: arguments.to_owned(),
            fingerprint: about.fingerprint(),
        };
        self.run_handler(identity, arguments, move |arguments, cx| {
            if may_become_task {
                cx.call.allow_task_promotion();
            }
            match tool.invoke(arguments, cx.clone()) {
                Ok(run) => DispatchOutcome::Handler(Box::pin(async move {
                    tool_result(&cx.call, &tool, run.await)
                })),
                Err(message) => DispatchOutcome::Ready(tool_result(
                    &cx.call,
                    &tool,
                    Ok(ToolResult::error(message)),
                )),
            }
        })
    }

    /// Runs a tool as a task from the start.
    fn start_task(self, tool: Arc<Tool>, arguments: &str, ttl: Option<Duration>) -> RunningRequest {
        let call = self.call;
        let cx = Context { call: call.clone() };
        let arguments = arguments.to_owned();
        let operation = middleware::operation(&call, self.request);
        let run: BoxFuture<ResponseResult> = Box::pin(async move {
            let call = cx.call.clone();
            let handler: BoxFuture<ResponseResult> = match tool.invoke(&arguments, cx.clone()) {
                Ok(run) => Box::pin(async move { tool_result(&cx.call, &tool, run.await) }),
                // A client that requested a task gets one, even if it only reports invalid arguments.
                Err(message) if cx.call.origin.rules.tasks == TaskModel::ClientRequested => {
                    Box::pin(
                        async move { tool_result(&cx.call, &tool, Ok(ToolResult::error(message))) },
                    )
                }
                Err(message) => {
                    return tool_result(&cx.call, &tool, Ok(ToolResult::error(message)));
                }
            };
            let handler = match operation {
                Some(operation) => {
                    middleware::wrap_in_layers(operation, DispatchOutcome::Handler(handler))
                }
                None => handler,
            };
            tasks::create_and_run(call, ttl, handler).await
        });
        RunningRequest::new(call, DispatchOutcome::Handler(run)).with_layers_inside()
    }

    fn find_tool<'c>(&self) -> Result<(Arc<Tool>, &'c str, CallMode), RequestDenied>
    where
        Self: 'c,
    {
        let catalog = self.server.catalog();
        if !catalog.tools.is_advertised() {
            return Err(RpcError::method_not_found(&self.request.method).into());
        }
        let name = required(&self.request.params, "name")?;
        let tool = catalog.tools.get(&name, self.principal()).ok_or_else(|| {
            RpcError::invalid_params(format!("unknown tool `{}`", Truncated(&name)))
        })?;
        tool.required_scopes.check(&self.call.origin)?;
        let arguments = self.arguments()?;
        if let Some(request_headers) = self.request_headers {
            check_param_headers(request_headers, &tool.param_headers, arguments)?;
        }
        let params = &self.request.params;
        let mode = tasks::call_mode(catalog.supports_tasks, &self.call.origin, tool, params)?;
        Ok((tool.clone(), arguments, mode))
    }
}

/// Builds the result from what the tool returned.
fn tool_result(
    call: &RequestContext,
    tool: &Tool,
    returned: Result<ToolResult, ToolError>,
) -> ResponseResult {
    let name = &tool.definition.name;
    let mut result = match returned {
        Ok(output) => match tool.validate_output(&output.result, &call.server) {
            None => output.result,
            Some(mistake) => internal_failure(name, &*Box::<dyn Error>::from(mistake)),
        },
        Err(error) => error.into_tool_result(call.origin.rules, name)?,
    };
    if result.is_error == Some(true) {
        call.set_tool_error(true);
    }
    call.set_related_task(&mut result.meta);
    Ok(ResponseWriter::new(call).with_meta(&mut result, |result| &mut result.meta, None))
}

/// Compares the `Mcp-Param-*` headers with the arguments.
pub(crate) fn check_param_headers(
    request_headers: &dyn RequestHeaders,
    param_headers: &[ToolParamHeader],
    arguments: &str,
) -> Result<(), RpcError> {
    for param_header in param_headers {
        let header = request_headers.header(&param_header.header)?;
        headers::check_argument(header, member_at(arguments, &param_header.path)?)
            .map_err(|error| header_mismatch(format!("`{}`: {error}", param_header.header)))?;
    }
    Ok(())
}

/// Returns the raw JSON at a path of member names. Fails if an object on the path has a duplicate member.
fn member_at<'a>(json: &'a str, path: &[String]) -> Result<Option<&'a str>, RpcError> {
    let mut at = Some(json);
    for name in path {
        at = match at {
            Some(json) if json.starts_with('{') => RawObject::parse(json)?.get(name),
            // A missing member or a value that is not an object is checked by the tool's schema.
            _ => return Ok(None),
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_member_does_not_prevent_the_header_comparison() {
        let path = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let region = path(&["region"]);
        let nested = path(&["where", "region"]);

        assert_eq!(member_at(r#"{"region":"eu"}"#, &region), Ok(Some("\"eu\"")));
        assert_eq!(
            member_at(r#"{"where":{"region":1}}"#, &nested),
            Ok(Some("1"))
        );
        assert_eq!(member_at(r#"{"where":7}"#, &nested), Ok(None));
        assert_eq!(member_at("{}", &region), Ok(None));
        assert!(member_at(r#"{"x":1,"x":2,"region":"eu"}"#, &region).is_err());
        assert!(member_at(r#"{"where":{"x":1,"x":2,"region":"eu"}}"#, &nested).is_err());
    }
}
