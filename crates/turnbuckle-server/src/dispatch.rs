//! From a method name to the code that answers it.

mod tool_calls;

use std::{borrow::Cow, sync::Arc};

use turnbuckle_protocol::{
    Principal, RpcError,
    jsonrpc::{Excerpt, Object, Params, Request},
    types::{CompleteParams, CompleteResult, Completion, CompletionReference, ListenParams},
};

use crate::{
    CacheHint, Server,
    catalog::{Listed, Page, Table},
    completion::Completing,
    context::{Call, Context},
    exchange::{BoxFuture, Exchange, Outcome, Run},
    extension::{Added, Response},
    incident,
    input::{Rounds, Subject},
    lifecycle::{Asking, Caller, stateless::Mirror},
    middleware,
    reply::Reply,
    request_error,
    scopes::Denied,
    span, subscriptions, tasks,
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
    mut caller: Caller,
    mirror: Option<&dyn Mirror>,
) -> Exchange {
    if request.method == "subscriptions/listen" {
        caller.stays();
    }
    let call = Arc::new(Call::new(request.id.clone(), server.clone(), caller));
    let arrived = Arrived {
        server,
        request,
        call,
        mirror,
    };
    match &*request.method {
        "tools/call" => arrived.call_tool(),
        "tools/list" => {
            arrived.list(|server| Some(&server.tools).filter(|tools| tools.is_offered()))
        }
        "resources/read" => arrived.read_resource(),
        "resources/list" if server.has_sources() => arrived.list_with_sources(),
        "resources/list" => {
            arrived.list(|server| Some(&server.resources).filter(|_| server.has_resources()))
        }
        "resources/templates/list" => {
            arrived.list(|server| Some(&server.templates).filter(|_| server.has_resources()))
        }
        "prompts/get" => arrived.get_prompt(),
        "prompts/list" => {
            arrived.list(|server| Some(&server.prompts).filter(|prompts| prompts.is_offered()))
        }
        "completion/complete" => arrived.complete(),
        "server/discover" => arrived.plain(|call| Ok(crate::lifecycle::stateless::discover(call))),
        "subscriptions/listen" => arrived.listen(),
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" | "tasks/list" => {
            arrived.tasks()
        }
        method => match server.extension_method(method, arrived.call.caller.rules) {
            Some(added) => arrived.respond(added.clone()),
            None => {
                let error = RpcError::method_not_found(method);
                arrived.plain(|_| Err(error))
            }
        },
    }
}

/// A request on its way to its handler.
struct Arrived<'a, 'b> {
    server: &'a Server,
    request: &'a Request<'b>,
    call: Arc<Call>,
    mirror: Option<&'a dyn Mirror>,
}

impl Arrived<'_, '_> {
    /// Answers at once, without a handler.
    fn plain(self, answer: impl FnOnce(&Call) -> Outcome) -> Exchange {
        let call = self.call;
        let outcome = answer(&call);
        Exchange::new(call, Run::Ready(outcome))
    }

    fn fail(self, error: RpcError) -> Exchange {
        self.plain(|_| Err(error))
    }

    fn deny(self, denied: Denied) -> Exchange {
        Exchange::denied(self.call, denied)
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
        let cursor = cursor(&self.request.params);
        self.plain(|call| {
            let server = &call.server;
            let page = table.page(&Page::of(call, cursor?.as_deref()))?;
            let cache = server.list_cache();
            let cache = if table.is_open() {
                cache
            } else {
                cache.for_one()
            };
            Ok(Reply::new(call).shared(page, Some(cache)))
        })
    }

    /// Lists resources of which some are kept where they come and go by themselves.
    fn list_with_sources(self) -> Exchange {
        let cursor = cursor(&self.request.params).map(|cursor| cursor.map(Cow::into_owned));
        let call = self.call;
        let listed = call.clone();
        let run: BoxFuture<Outcome> = Box::pin(async move {
            let (cursor, server) = (cursor?, &listed.server);
            let sources = server.catalog().sources.clone();
            for source in sources {
                source.freshen(server.clone()).await;
            }
            let all = server.catalog().all_resources();
            let page = all.page(&Page::of(&listed, cursor.as_deref()))?;
            let hint = server.list_cache();
            let hint = if all.is_open() { hint } else { hint.for_one() };
            Ok(Reply::new(&listed).shared(page, Some(hint)))
        });
        Exchange::new(call, Run::Handler(run))
    }

    /// Runs the handler of a method that an extension adds.
    fn respond(self, added: Arc<Added>) -> Exchange {
        let method = self.request.method.clone().into_owned();
        let arguments = own_params(&self.request.params);
        // What the error is about, where it says so: the thing that was asked for by name, else the method.
        let named = added
            .name_member()
            .map(|member| self.request.params.string(member));
        let about = match named {
            Some(Ok(Some(name))) => name.into_owned(),
            _ => method.clone(),
        };
        let subject = |_: &Params<'_>| Subject {
            method: "an extension",
            name: method,
            arguments: arguments.clone(),
            fingerprint: [0; 16],
        };
        self.run(
            subject,
            &arguments.clone(),
            move |arguments, cx| match (added.method.respond)(arguments, cx.clone()) {
                Ok(run) => Run::Handler(Box::pin(async move {
                    let response = run
                        .await
                        .map_err(|error| error.into_rpc_error(cx.call.caller.rules, &about))?;
                    let reply = Reply::new(&cx.call);
                    Ok(match response {
                        Response::Object(object) => reply.open(object, added.method.cache),
                        Response::Written(page, cache) => reply.shared(page, Some(cache)),
                    })
                })),
                Err(error) => Run::Ready(Err(error)),
            },
        )
    }

    /// Runs a handler that may ask the client, now or in a later round.
    fn run(
        mut self,
        subject: impl FnOnce(&Params<'_>) -> Subject,
        arguments: &str,
        start: impl FnOnce(&str, Context) -> Run + Send + 'static,
    ) -> Exchange {
        if self.call.caller.rules.asking == Asking::Request {
            let run = begin_handler(arguments, self.context(), start);
            return Exchange::new(self.call, run);
        }
        let params = &self.request.params;
        let (rounds, stored) =
            match Rounds::begin(self.server, self.principal(), subject(params), params) {
                Ok(begun) => begun,
                Err(error) => return self.fail(error),
            };
        let Some(call) = Arc::get_mut(&mut self.call) else {
            return self.fail(RpcError::internal("the call has begun already"));
        };
        call.rounds = Some(Box::new(rounds));
        let Some(stored) = stored else {
            let run = begin_handler(arguments, self.context(), start);
            return Exchange::new(self.call, run);
        };
        let later = self.call.clone();
        let run: BoxFuture<Outcome> = Box::pin(async move {
            let Some(rounds) = &later.rounds else {
                return Err(RpcError::internal("no rounds"));
            };
            rounds.fetch(&later.server, &stored).await?;
            let cx = Context {
                call: later.clone(),
            };
            match start(&rounds.subject().arguments, cx) {
                Run::Ready(outcome) => outcome,
                Run::Handler(handler) => handler.await,
            }
        });
        Exchange::new(self.call, Run::Handler(run))
    }

    fn context(&self) -> Context {
        Context {
            call: self.call.clone(),
        }
    }

    /// Answers requests about tasks.
    fn tasks(self) -> Exchange {
        if !self.server.catalog().offers_tasks {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        }
        let call = self.call;
        let run = tasks::begin(&self.request.method, &self.request.params, call.clone());
        Exchange::new(call, run)
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
        let Some(found) = catalog.find_resource(&uri, self.principal()) else {
            let error = request_error::not_found(self.call.caller.rules, &uri);
            return self.fail(error);
        };
        if let Err(denied) = found.needs().check(&self.call.caller) {
            return self.deny(denied);
        }
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
            Err(denied) => return self.deny(denied),
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

    fn find_prompt<'c>(&self) -> Result<(Arc<crate::Prompt>, &'c str), Denied>
    where
        Self: 'c,
    {
        let catalog = self.server.catalog();
        if !catalog.prompts.is_offered() {
            return Err(RpcError::method_not_found(&self.request.method).into());
        }
        let name = required(&self.request.params, "name")?;
        let prompt = catalog
            .prompts
            .get(&name, self.principal())
            .ok_or_else(|| {
                RpcError::invalid_params(format!("there is no prompt `{}`", Excerpt(&name)))
            })?;
        prompt.needs.check(&self.call.caller)?;
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
                let prompt = catalog.prompts.get(name, self.principal());
                prompt.map(|prompt| (&prompt.completers, &prompt.needs))
            }
            CompletionReference::Resource { uri } => catalog
                .templates
                .get(uri, self.principal())
                .map(|template| (&template.completers, &template.needs)),
            _ => None,
        };
        let Some((completers, needs)) = completers else {
            return self.fail(RpcError::invalid_params(
                "there is nothing to complete under this reference",
            ));
        };
        if let Err(denied) = needs.check(&self.call.caller) {
            return self.deny(denied);
        }
        let completer = completers.get(&params.argument.name).cloned();
        let typed = Completing {
            value: params.argument.value,
            arguments: params
                .context
                .and_then(|context| context.arguments)
                .unwrap_or_default(),
        };
        let call = self.call;
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
        let ListenParams { notifications, .. } = match self.request.params.parse() {
            Ok(params) => params,
            Err(error) => return self.fail(error),
        };
        if let Err(denied) =
            subscriptions::needs(&self.call, &notifications).check(&self.call.caller)
        {
            return self.deny(denied);
        }
        let call = self.call;
        let run = subscriptions::listen(call.clone(), notifications);
        Exchange::new(call, Run::Handler(Box::pin(run)))
    }

    fn principal(&self) -> Option<&Principal> {
        self.call.caller.principal.as_deref()
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

/// Where a list is to go on; the first page has no cursor, or none to speak of.
fn cursor<'a>(params: &Params<'a>) -> Result<Option<Cow<'a, str>>, RpcError> {
    match params.get("cursor") {
        Some("null") => Ok(None),
        _ => params.string("cursor"),
    }
}

fn required<'a>(params: &Params<'a>, member: &str) -> Result<Cow<'a, str>, RpcError> {
    params
        .string(member)?
        .ok_or_else(|| RpcError::invalid_params(format!("`{member}` is missing")))
}

/// The parameters as an object without what the protocol adds to those of any method.
fn own_params(params: &Params<'_>) -> String {
    const ADDED: [&str; 3] = ["_meta", "inputResponses", "requestState"];
    let mut own = String::from("{");
    let members = params.object().map(Object::members).into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| !ADDED.contains(&&**name)) {
        if own.len() > 1 {
            own.push(',');
        }
        own.push_str(&serde_json::Value::from(&*name).to_string());
        own.push(':');
        own.push_str(value);
    }
    own.push('}');
    own
}
