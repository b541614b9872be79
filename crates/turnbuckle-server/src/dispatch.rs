//! From a method name to the code that answers it.

use std::{error::Error, sync::Arc};

use turnbuckle_protocol::{
    RpcError,
    codec::headers,
    jsonrpc::{Excerpt, Object, Params, Request},
    types::{
        CallToolResult, CompleteParams, CompleteResult, Completion, CompletionReference,
        PaginatedParams,
    },
};

use crate::{
    CacheHint, Server, Tool,
    catalog::{Listed, Table},
    completion::Completing,
    context::{Call, Context},
    exchange::{BoxFuture, Exchange, Outcome, Run},
    incident,
    input::{self, Rounds, Subject},
    lifecycle::{
        Asking, Caller,
        stateless::{Mirror, mismatch},
    },
    middleware,
    reply::Reply,
    request_error, span, subscriptions,
    tools::{Output, ToolError, ToolErrorKind},
};

/// Begins to answer a request whose sender is known and whose method its revision has.
pub(crate) fn begin(
    server: &Server,
    request: &Request<'_>,
    caller: Caller,
    mirror: Option<&dyn Mirror>,
) -> Exchange {
    if span::nobody_listens() && server.layers().is_empty() {
        return find(server, request, caller, mirror);
    }
    let span = span::of(server, request, &caller);
    let exchange = span.in_scope(|| find(server, request, caller, mirror));
    middleware::around(exchange.in_span(span), request)
}

/// Finds what answers a request.
fn find(
    server: &Server,
    request: &Request<'_>,
    caller: Caller,
    mirror: Option<&dyn Mirror>,
) -> Exchange {
    let task = Task {
        server,
        request,
        caller,
        mirror,
    };
    match &*request.method {
        "tools/call" => task.call_tool(),
        "tools/list" => task.list(|server| Some(&server.tools).filter(|tools| !tools.is_empty())),
        "resources/read" => task.read_resource(),
        "resources/list" => {
            task.list(|server| Some(&server.resources).filter(|_| server.has_resources()))
        }
        "resources/templates/list" => {
            task.list(|server| Some(&server.templates).filter(|_| server.has_resources()))
        }
        "prompts/get" => task.get_prompt(),
        "prompts/list" => {
            task.list(|server| Some(&server.prompts).filter(|prompts| !prompts.is_empty()))
        }
        "completion/complete" => task.complete(),
        "server/discover" => task.plain(|call| Ok(crate::lifecycle::stateless::discover(call))),
        "subscriptions/listen" => task.listen(),
        method => {
            let error = RpcError::method_not_found(method);
            task.plain(|_| Err(error))
        }
    }
}

/// A request on its way to its handler.
struct Task<'a, 'b> {
    server: &'a Server,
    request: &'a Request<'b>,
    caller: Caller,
    mirror: Option<&'a dyn Mirror>,
}

impl Task<'_, '_> {
    /// Answers at once, without a handler.
    fn plain(self, answer: impl FnOnce(&Call) -> Outcome) -> Exchange {
        let call = Arc::new(Call::new(
            self.request.id.clone(),
            self.server.clone(),
            self.caller,
            None,
        ));
        let outcome = answer(&call);
        Exchange::new(call, Run::Ready(outcome))
    }

    fn fail(self, error: RpcError) -> Exchange {
        self.plain(|_| Err(error))
    }

    fn list<T: Listed>(
        self,
        table: impl FnOnce(&crate::catalog::Catalog) -> Option<&Table<T>>,
    ) -> Exchange {
        let catalog = self.server.catalog();
        let Some(table) = table(&catalog) else {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        };
        let params = self.request.params.parse::<PaginatedParams>();
        self.plain(|call| {
            let server = &call.server;
            let page = table.page(
                call.caller.rules,
                params?.cursor.as_deref(),
                server.page_length(),
                server.keys(),
            )?;
            Ok(Reply::new(call).written(&page, Some(server.list_cache())))
        })
    }

    /// Runs a handler that may ask the client, now or in a later round.
    fn run(
        self,
        subject: impl FnOnce(&Params<'_>) -> Subject,
        arguments: &str,
        start: impl FnOnce(&str, Context) -> Run + Send + 'static,
    ) -> Exchange {
        let (id, server) = (self.request.id.clone(), self.server.clone());
        if self.caller.rules.asking == Asking::Request {
            let call = Arc::new(Call::new(id, server, self.caller, None));
            let run = begin_handler(arguments, Context { call: call.clone() }, start);
            return Exchange::new(call, run);
        }
        let params = &self.request.params;
        let principal = self.caller.principal.as_deref();
        match Rounds::begin(&server, principal, subject(params), params) {
            Err(error) => self.fail(error),
            Ok((rounds, None)) => {
                let call = Arc::new(Call::new(id, server, self.caller, Some(Box::new(rounds))));
                let run = begin_handler(arguments, Context { call: call.clone() }, start);
                Exchange::new(call, run)
            }
            Ok((rounds, Some(stored))) => {
                let call = Arc::new(Call::new(id, server, self.caller, Some(Box::new(rounds))));
                let later = call.clone();
                let run: BoxFuture<Outcome> = Box::pin(async move {
                    let Some(rounds) = &later.rounds else {
                        return Err(RpcError::internal("no rounds"));
                    };
                    rounds.fetch(&later.server, &stored).await?;
                    match start(
                        &rounds.subject().arguments,
                        Context {
                            call: later.clone(),
                        },
                    ) {
                        Run::Ready(outcome) => outcome,
                        Run::Handler(handler) => handler.await,
                    }
                });
                Exchange::new(call, Run::Handler(run))
            }
        }
    }

    fn call_tool(self) -> Exchange {
        let (tool, arguments) = match self.find_tool() {
            Ok(found) => found,
            Err(error) => return self.fail(error),
        };
        let about = tool.clone();
        let subject = |_: &Params<'_>| Subject {
            method: "tools/call",
            name: about.definition.name.clone(),
            arguments: arguments.to_owned(),
            fingerprint: about.fingerprint,
        };
        self.run(subject, arguments, move |arguments, cx| {
            match tool.invoke.invoke(arguments, cx.clone()) {
                Ok(run) => {
                    Run::Handler(Box::pin(async move { tool_result(&cx, &tool, run.await) }))
                }
                Err(message) => Run::Ready(tool_result(&cx, &tool, Ok(Output::error(message)))),
            }
        })
    }

    fn find_tool<'c>(&self) -> Result<(Arc<Tool>, &'c str), RpcError>
    where
        Self: 'c,
    {
        let catalog = self.server.catalog();
        if catalog.tools.is_empty() {
            return Err(RpcError::method_not_found(&self.request.method));
        }
        let name = required(&self.request.params, "name")?;
        let tool = catalog.tools.get(&name).ok_or_else(|| {
            RpcError::invalid_params(format!("there is no tool `{}`", Excerpt(&name)))
        })?;
        let arguments = self.arguments()?;
        if let Some(mirror) = self.mirror {
            same_parameters(mirror, tool, arguments)?;
        }
        Ok((tool.clone(), arguments))
    }

    fn read_resource(self) -> Exchange {
        let uri = match required(&self.request.params, "uri") {
            Ok(uri) => uri.into_owned(),
            Err(error) => return self.fail(error),
        };
        let catalog = self.server.catalog();
        if !catalog.has_resources() {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        }
        let Some(found) = catalog.find_resource(&uri) else {
            let error = request_error::not_found(self.caller.rules, &uri);
            return self.fail(error);
        };
        let about = uri.clone();
        let subject = |_: &Params<'_>| Subject {
            method: "resources/read",
            name: about,
            arguments: String::new(),
            fingerprint: [0; 16],
        };
        // What an answer of the user went into is for nobody else to keep.
        let params = &self.request.params;
        let answered =
            params.get("inputResponses").is_some() || params.get("requestState").is_some();
        self.run(subject, "", move |_, cx| {
            let cache = if answered {
                CacheHint::NONE
            } else {
                found.cache()
            };
            let mime_type = found.mime_type();
            match found.read(&uri, cx.clone()) {
                Ok(run) => Run::Handler(Box::pin(async move {
                    let contents = run
                        .await
                        .map_err(|error| error.into_rpc_error(cx.call.caller.rules, &uri))?;
                    let mut result = contents.into_result(&uri, mime_type.as_deref());
                    if result.contents.is_empty() {
                        // An empty list would say that the resource exists and has nothing in it.
                        return Err(request_error::not_found(cx.call.caller.rules, &uri));
                    }
                    Ok(Reply::new(&cx.call).with_meta(
                        &mut result,
                        |result| &mut result.meta,
                        Some(cache),
                    ))
                })),
                Err(error) => Run::Ready(Err(error.into_rpc_error(cx.call.caller.rules, &uri))),
            }
        })
    }

    fn get_prompt(self) -> Exchange {
        let (prompt, arguments) = match self.find_prompt() {
            Ok(found) => found,
            Err(error) => return self.fail(error),
        };
        let about = prompt.clone();
        let subject = |_: &Params<'_>| Subject {
            method: "prompts/get",
            name: about.definition.name.clone(),
            arguments: arguments.to_owned(),
            fingerprint: [0; 16],
        };
        self.run(subject, arguments, move |arguments, cx| {
            let name = prompt.definition.name.clone();
            match (prompt.make)(arguments, cx.clone()) {
                Ok(run) => {
                    Run::Handler(Box::pin(async move {
                        let messages = run
                            .await
                            .map_err(|error| error.into_rpc_error(cx.call.caller.rules, &name))?;
                        let mut result = messages.result;
                        Ok(Reply::new(&cx.call).with_meta(
                            &mut result,
                            |result| &mut result.meta,
                            None,
                        ))
                    }))
                }
                Err(message) => Run::Ready(Err(RpcError::invalid_params(message))),
            }
        })
    }

    fn find_prompt<'c>(&self) -> Result<(Arc<crate::Prompt>, &'c str), RpcError>
    where
        Self: 'c,
    {
        let catalog = self.server.catalog();
        if catalog.prompts.is_empty() {
            return Err(RpcError::method_not_found(&self.request.method));
        }
        let name = required(&self.request.params, "name")?;
        let prompt = catalog.prompts.get(&name).ok_or_else(|| {
            RpcError::invalid_params(format!("there is no prompt `{}`", Excerpt(&name)))
        })?;
        Ok((prompt.clone(), self.arguments()?))
    }

    fn complete(self) -> Exchange {
        let catalog = self.server.catalog();
        if !catalog.completes() {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        }
        let params = match self.request.params.parse::<CompleteParams>() {
            Ok(params) => params,
            Err(error) => return self.fail(error),
        };
        let completers = match &params.reference {
            CompletionReference::Prompt { name, .. } => {
                catalog.prompts.get(name).map(|prompt| &prompt.completers)
            }
            CompletionReference::Resource { uri } => catalog
                .templates
                .get(uri)
                .map(|template| &template.completers),
            _ => None,
        };
        let Some(completers) = completers else {
            return self.fail(RpcError::invalid_params(
                "there is nothing to complete under this reference",
            ));
        };
        let completer = completers.get(&params.argument.name).cloned();
        let typed = Completing {
            value: params.argument.value,
            arguments: params
                .context
                .and_then(|context| context.arguments)
                .unwrap_or_default(),
        };
        let call = Arc::new(Call::new(
            self.request.id.clone(),
            self.server.clone(),
            self.caller,
            None,
        ));
        let cx = Context { call: call.clone() };
        let run: BoxFuture<Outcome> = Box::pin(async move {
            let values = match completer {
                Some(completer) => completer(typed, cx.clone()).await,
                None => Ok(Vec::new()),
            };
            let values =
                values.map_err(|error| error.into_rpc_error(cx.call.caller.rules, "completion"))?;
            let mut result = CompleteResult::new(Completion::new(values));
            Ok(Reply::new(&cx.call).object(&mut result, None))
        });
        Exchange::new(call, Run::Handler(run))
    }

    fn listen(self) -> Exchange {
        let params = match self.request.params.parse() {
            Ok(params) => params,
            Err(error) => return self.fail(error),
        };
        let call = Arc::new(Call::new(
            self.request.id.clone(),
            self.server.clone(),
            self.caller,
            None,
        ));
        let run = subscriptions::listen(call.clone(), params);
        Exchange::new(call, Run::Handler(Box::pin(run)))
    }

    /// The raw arguments, which must be an object.
    fn arguments<'c>(&self) -> Result<&'c str, RpcError>
    where
        Self: 'c,
    {
        match self.request.params.get("arguments") {
            None => Ok("{}"),
            Some(object) if object.starts_with('{') => Ok(object),
            Some(_) => Err(RpcError::invalid_params("`arguments` must be an object")),
        }
    }
}

/// Turns what a tool returned, or failed with, into its result.
fn tool_result(cx: &Context, tool: &Tool, returned: Result<Output, ToolError>) -> Outcome {
    let name = &tool.definition.name;
    let rules = cx.call.caller.rules;
    let mut result = match returned.map_err(|error| error.kind) {
        Ok(output) => match tool.broken_promise(&output.result, &cx.call.server) {
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
        cx.call.set_tool_error(true);
    }
    Ok(Reply::new(&cx.call).with_meta(&mut result, |result| &mut result.meta, None))
}

/// The result of a tool that failed for reasons that are not the model's business.
fn failed(name: &str, error: &(dyn Error + 'static)) -> CallToolResult {
    let id = incident::report(name, error);
    CallToolResult::error(format!(
        "`{name}` failed; the server's log has the reason under incident {id}"
    ))
}

/// Begins to run a handler: at once, or where layers have their say first, when they let it.
fn begin_handler(
    arguments: &str,
    cx: Context,
    start: impl FnOnce(&str, Context) -> Run + Send + 'static,
) -> Run {
    if cx.call.server.layers().is_empty() {
        return guarded(|| start(arguments, cx));
    }
    let arguments = arguments.to_owned();
    Run::Handler(Box::pin(async move {
        match start(&arguments, cx) {
            Run::Ready(outcome) => outcome,
            Run::Handler(handler) => handler.await,
        }
    }))
}

/// Runs the synchronous beginning of a handler; a panic there is an internal error like any other.
fn guarded(start: impl FnOnce() -> Run) -> Run {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(start))
        .unwrap_or_else(|panic| Run::Ready(Err(incident::panicked(&*panic))))
}

fn required<'a>(params: &Params<'a>, member: &str) -> Result<std::borrow::Cow<'a, str>, RpcError> {
    params
        .string(member)?
        .ok_or_else(|| RpcError::invalid_params(format!("`{member}` is missing")))
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
