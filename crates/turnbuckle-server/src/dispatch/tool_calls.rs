//! Calls of tools: found, compared with their headers, run as a call or as a task, and turned into results.

use std::{error::Error, sync::Arc, time::Duration};

use turnbuckle_protocol::{
    RpcError,
    codec::headers,
    jsonrpc::{Excerpt, Object, Params},
    types::CallToolResult,
};

use super::{Arrived, required};
use crate::{
    Tool,
    context::{Call, Context},
    exchange::{BoxFuture, Exchange, Outcome, Run},
    incident,
    input::{self, Subject},
    lifecycle::{
        TaskDesign,
        stateless::{Mirror, mismatch},
    },
    middleware,
    reply::Reply,
    scopes::Denied,
    tasks::{self, Way},
    tools::{Output, ToolError, ToolErrorKind},
};

impl Arrived<'_, '_> {
    pub(super) fn call_tool(self) -> Exchange {
        let (tool, arguments, way) = match self.find_tool() {
            Ok(found) => found,
            Err(denied) => return self.deny(denied),
        };
        let asks_first = match way {
            Way::Call => false,
            Way::CallFirst => true,
            Way::None => {
                let message = format!(
                    "`{}` runs only as a task, and this client speaks a revision without tasks",
                    tool.name()
                );
                return self.plain(|call| tool_result(call, &tool, Ok(Output::error(message))));
            }
            Way::Task(ttl) => return self.start_task(tool, arguments, ttl),
        };
        let about = tool.clone();
        let subject = |_: &Params<'_>| Subject {
            method: "tools/call",
            name: about.definition.name.clone(),
            arguments: arguments.to_owned(),
            fingerprint: about.fingerprint(),
        };
        self.run(subject, arguments, move |arguments, cx| {
            if asks_first {
                cx.call.allow_turn();
            }
            match tool.invoke.invoke(arguments, cx.clone()) {
                Ok(run) => {
                    Run::Handler(Box::pin(
                        async move { tool_result(&cx.call, &tool, run.await) },
                    ))
                }
                Err(message) => {
                    Run::Ready(tool_result(&cx.call, &tool, Ok(Output::error(message))))
                }
            }
        })
    }

    /// Calls a tool as a task from the beginning.
    fn start_task(self, tool: Arc<Tool>, arguments: &str, ttl: Option<Duration>) -> Exchange {
        let call = self.call;
        let cx = Context { call: call.clone() };
        let arguments = arguments.to_owned();
        let operation = middleware::operation(&call, self.request);
        let run: BoxFuture<Outcome> = Box::pin(async move {
            let call = cx.call.clone();
            let handler: BoxFuture<Outcome> = match tool.invoke.invoke(&arguments, cx.clone()) {
                Ok(run) => Box::pin(async move { tool_result(&cx.call, &tool, run.await) }),
                // Whoever asked for a task gets one, if only to learn there what was wrong.
                Err(message) if cx.call.caller.rules.tasks == TaskDesign::Asked => Box::pin(
                    async move { tool_result(&cx.call, &tool, Ok(Output::error(message))) },
                ),
                Err(message) => return tool_result(&cx.call, &tool, Ok(Output::error(message))),
            };
            let handler = match operation {
                Some(operation) => middleware::layered(operation, Run::Handler(handler)),
                None => handler,
            };
            tasks::start(call, ttl, handler).await
        });
        Exchange::new(call, Run::Handler(run)).with_layers_inside()
    }

    fn find_tool<'c>(&self) -> Result<(Arc<Tool>, &'c str, Way), Denied>
    where
        Self: 'c,
    {
        let catalog = self.server.catalog();
        if !catalog.tools.is_offered() {
            return Err(RpcError::method_not_found(&self.request.method).into());
        }
        let name = required(&self.request.params, "name")?;
        let tool = catalog.tools.get(&name, self.principal()).ok_or_else(|| {
            RpcError::invalid_params(format!("there is no tool `{}`", Excerpt(&name)))
        })?;
        tool.needs.check(&self.call.caller)?;
        let arguments = self.arguments()?;
        if let Some(mirror) = self.mirror {
            same_parameters(mirror, tool, arguments)?;
        }
        let params = &self.request.params;
        let way = tasks::way(catalog.offers_tasks, &self.call.caller, tool, params)?;
        Ok((tool.clone(), arguments, way))
    }
}

/// Turns what a tool returned, or failed with, into its result.
fn tool_result(call: &Call, tool: &Tool, returned: Result<Output, ToolError>) -> Outcome {
    let name = &tool.definition.name;
    let rules = call.caller.rules;
    let mut result = match returned.map_err(|error| error.kind) {
        Ok(output) => match tool.broken_promise(&output.result, &call.server) {
            None => output.result,
            Some(mistake) => failed(name, &*Box::<dyn Error>::from(mistake)),
        },
        Err(ToolErrorKind::ForModel { message, cause }) => {
            if let Some(cause) = cause {
                tracing::warn!(tool = name, %cause, "{message}");
            }
            CallToolResult::error(message)
        }
        Err(ToolErrorKind::Internal(error)) => failed(name, &*error),
        Err(ToolErrorKind::Undeclared(needed, message)) if rules.undeclared_is_error => {
            return Err(input::undeclared(rules, &needed, &message));
        }
        Err(ToolErrorKind::Undeclared(_, message)) => CallToolResult::error(message),
        Err(ToolErrorKind::Protocol(error)) => return Err(error),
    };
    if result.is_error == Some(true) {
        call.set_tool_error(true);
    }
    call.tag(&mut result.meta);
    Ok(Reply::new(call).with_meta(&mut result, |result| &mut result.meta, None))
}

/// The result of a tool that failed for reasons that are not the model's business.
fn failed(name: &str, error: &(dyn Error + 'static)) -> CallToolResult {
    let id = incident::report(name, error);
    CallToolResult::error(format!(
        "`{name}` failed; the server's log has the reason under incident {id}"
    ))
}

/// Compares the parameters that a tool mirrors into headers with the headers.
fn same_parameters(mirror: &dyn Mirror, tool: &Tool, arguments: &str) -> Result<(), RpcError> {
    for mark in &tool.param_headers {
        let header = mirror.header(&mark.header)?;
        headers::check_argument(header, member_at(arguments, &mark.path)?)
            .map_err(|error| mismatch(format!("`{}`: {error}", mark.header)))?;
    }
    Ok(())
}

/// The raw JSON at a path of member names. An object that names a member twice has no one value to compare.
fn member_at<'a>(json: &'a str, path: &[String]) -> Result<Option<&'a str>, RpcError> {
    let mut at = Some(json);
    for name in path {
        at = match at {
            Some(json) if json.starts_with('{') => Object::parse(json)?.get(name),
            // What is not there, or is no object, is for the tool's schema to judge.
            _ => return Ok(None),
        };
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_occurs_twice_hides_no_other_from_comparison() {
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
