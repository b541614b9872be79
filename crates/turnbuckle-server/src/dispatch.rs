//! Routes a request to the code that handles it.

mod completion;
mod extensions;
mod prompts;
mod relay;
mod resources;
mod subscriptions;
mod tasks;
pub(crate) mod tools;

use std::{borrow::Cow, sync::Arc};

use turnbuckle_protocol::{
    Principal, RpcError,
    jsonrpc::{Params, Request},
};

use crate::{
    Server,
    catalog::{CatalogEntry, EntryTable, PageRequest, scopes::RequestDenied},
    context::Context,
    input::{RequestIdentity, RoundTrips},
    lifecycle::{ClientRequestMode, RequestOrigin, stateless::RequestHeaders},
    request::{
        BoxFuture, DispatchOutcome, RequestContext, ResponseResult, RunningRequest,
        error::report_panic, response::ResponseWriter,
    },
};

/// Selects the code that handles a request, and starts it.
pub(crate) fn route(
    server: &Server,
    request: &Request<'_>,
    mut origin: RequestOrigin,
    request_headers: Option<&dyn RequestHeaders>,
) -> RunningRequest {
    if request.method == "subscriptions/listen" {
        origin.detach_headers();
    }
    let call = RequestContext::for_request(server, request, origin);
    let dispatch = Dispatch {
        server,
        request,
        call,
        request_headers,
    };
    if let Some(relay) = server.relayed_to(&request.method) {
        return dispatch.relay(relay);
    }
    match &*request.method {
        "tools/call" => dispatch.call_tool(),
        "tools/list" if server.tool_views().is_empty() => dispatch.list_tools(),
        "tools/list" => dispatch.list_tool_view(),
        "resources/read" => dispatch.read_resource(),
        "resources/list" if server.has_providers() => dispatch.list_with_providers(),
        "resources/list" => {
            dispatch.list(|server| Some(&server.resources).filter(|_| server.has_resources()))
        }
        "resources/templates/list" => {
            dispatch.list(|server| Some(&server.templates).filter(|_| server.has_resources()))
        }
        "prompts/get" => dispatch.get_prompt(),
        "prompts/list" => {
            dispatch.list(|server| Some(&server.prompts).filter(|prompts| prompts.is_advertised()))
        }
        "completion/complete" => dispatch.complete(),
        "server/discover" => dispatch.respond_now(crate::lifecycle::stateless::discover),
        "subscriptions/listen" => dispatch.listen(),
        "tasks/get" | "tasks/update" | "tasks/cancel" | "tasks/result" | "tasks/list" => {
            dispatch.tasks()
        }
        method => match server.extension_method(method, dispatch.call.origin.rules) {
            Some(registered) => dispatch.call_extension(registered.clone()),
            None => {
                let error = RpcError::method_not_found(method);
                dispatch.respond_now(|_| Err(error))
            }
        },
    }
}

/// A request being routed to its handler.
struct Dispatch<'a, 'b> {
    server: &'a Server,
    request: &'a Request<'b>,
    call: Arc<RequestContext>,
    request_headers: Option<&'a dyn RequestHeaders>,
}

impl Dispatch<'_, '_> {
    /// Responds without running a handler.
    fn respond_now(
        self,
        respond: impl FnOnce(&RequestContext) -> ResponseResult,
    ) -> RunningRequest {
        let call = self.call;
        let outcome = respond(&call);
        RunningRequest::new(call, DispatchOutcome::Ready(outcome))
    }

    fn fail(self, error: RpcError) -> RunningRequest {
        self.respond_now(|_| Err(error))
    }

    fn deny(self, denied: RequestDenied) -> RunningRequest {
        RunningRequest::denied(self.call, denied)
    }

    /// Runs a handler that may send client requests, directly or in a later round trip.
    fn run_handler(
        mut self,
        identity: impl FnOnce(&Params<'_>) -> RequestIdentity,
        arguments: &str,
        start: impl FnOnce(&str, Context) -> DispatchOutcome + Send + 'static,
    ) -> RunningRequest {
        if self.call.origin.rules.client_request_mode == ClientRequestMode::Direct {
            let run = start_handler(arguments, self.context(), start);
            return RunningRequest::new(self.call, run);
        }
        let params = &self.request.params;
        let (round_trips, stored) =
            match RoundTrips::begin(self.server, self.principal(), identity(params), params) {
                Ok(started) => started,
                Err(error) => return self.fail(error),
            };
        let Some(call) = Arc::get_mut(&mut self.call) else {
            return self.fail(RpcError::internal("the call has already started"));
        };
        call.round_trips = Some(Box::new(round_trips));
        let Some(stored) = stored else {
            let run = start_handler(arguments, self.context(), start);
            return RunningRequest::new(self.call, run);
        };
        let resumed = self.call.clone();
        let run: BoxFuture<ResponseResult> = Box::pin(async move {
            let Some(round_trips) = &resumed.round_trips else {
                return Err(RpcError::internal("round-trip state is missing"));
            };
            round_trips.load_stored(&resumed.server, &stored).await?;
            let cx = Context {
                call: resumed.clone(),
            };
            match start(&round_trips.identity().arguments, cx) {
                DispatchOutcome::Ready(outcome) => outcome,
                DispatchOutcome::Handler(handler) => handler.await,
            }
        });
        RunningRequest::new(self.call, DispatchOutcome::Handler(run))
    }

    fn context(&self) -> Context {
        Context {
            call: self.call.clone(),
        }
    }

    fn principal(&self) -> Option<&Principal> {
        self.call.origin.principal.as_deref()
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

/// Starts a handler: immediately, or, if the server has layers, when they run it.
fn start_handler(
    arguments: &str,
    cx: Context,
    start: impl FnOnce(&str, Context) -> DispatchOutcome + Send + 'static,
) -> DispatchOutcome {
    if cx.call.server.layers().is_empty() {
        return catch_panic(|| start(arguments, cx));
    }
    let arguments = arguments.to_owned();
    DispatchOutcome::Handler(Box::pin(async move {
        match start(&arguments, cx) {
            DispatchOutcome::Ready(outcome) => outcome,
            DispatchOutcome::Handler(handler) => handler.await,
        }
    }))
}

/// Runs the synchronous part of a handler. A panic becomes an internal error.
fn catch_panic(start: impl FnOnce() -> DispatchOutcome) -> DispatchOutcome {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(start))
        .unwrap_or_else(|panic| DispatchOutcome::Ready(Err(report_panic(&*panic))))
}

fn required<'a>(params: &Params<'a>, member: &str) -> Result<Cow<'a, str>, RpcError> {
    params
        .string(member)?
        .ok_or_else(|| RpcError::invalid_params(format!("`{member}` is missing")))
}

impl Dispatch<'_, '_> {
    fn list<T: CatalogEntry>(
        self,
        table: impl FnOnce(&crate::catalog::Catalog) -> Option<&EntryTable<T>>,
    ) -> RunningRequest {
        let catalog = self.server.catalog();
        let Some(table) = table(&catalog) else {
            let error = RpcError::method_not_found(&self.request.method);
            return self.fail(error);
        };
        let cursor = cursor(&self.request.params);
        self.respond_now(|call| {
            let server = &call.server;
            let page = table.page(&PageRequest::new(call, cursor?.as_deref()))?;
            let cache = server.list_cache();
            let cache = if table.is_open() {
                cache
            } else {
                cache.into_private()
            };
            Ok(ResponseWriter::new(call).shared_object(page, Some(cache)))
        })
    }

    fn list_tools(self) -> RunningRequest {
        self.list(|catalog| Some(&catalog.tools).filter(|tools| tools.is_advertised()))
    }

    /// Lists the tools of the first view that applies to the request, or all.
    fn list_tool_view(self) -> RunningRequest {
        let tools = &self.server.catalog().tools;
        let extensions = &self.call.origin.extensions;
        let views = self.server.tool_views().iter();
        let mut listed = views.filter_map(|view| view.list(tools, extensions).transpose());
        match listed.next() {
            None => self.list_tools(),
            Some(Err(error)) => self.fail(error),
            Some(Ok(table)) => {
                let cursor = cursor(&self.request.params);
                self.respond_now(|call| {
                    let page = table.page(&PageRequest::new(call, cursor?.as_deref()))?;
                    // Another request may list other tools.
                    let cache = call.server.list_cache().into_private();
                    Ok(ResponseWriter::new(call).shared_object(page, Some(cache)))
                })
            }
        }
    }

    /// Lists resources when some of them come from providers.
    fn list_with_providers(self) -> RunningRequest {
        let cursor = cursor(&self.request.params).map(|cursor| cursor.map(Cow::into_owned));
        let call = self.call;
        let listed = call.clone();
        let run: BoxFuture<ResponseResult> = Box::pin(async move {
            let (cursor, server) = (cursor?, &listed.server);
            let sources = server.catalog().providers.clone();
            for provider in sources {
                provider.refresh(server.clone()).await;
            }
            let all = server.catalog().all_resources();
            let page = all.page(&PageRequest::new(&listed, cursor.as_deref()))?;
            let hint = server.list_cache();
            let hint = if all.is_open() {
                hint
            } else {
                hint.into_private()
            };
            Ok(ResponseWriter::new(&listed).shared_object(page, Some(hint)))
        });
        RunningRequest::new(call, DispatchOutcome::Handler(run))
    }
}

/// Reads the cursor of a list request. `null` means the first page.
fn cursor<'a>(params: &Params<'a>) -> Result<Option<Cow<'a, str>>, RpcError> {
    match params.get("cursor") {
        Some("null") => Ok(None),
        _ => params.string("cursor"),
    }
}
