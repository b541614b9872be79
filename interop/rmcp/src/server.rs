//! A test server on rmcp, for our client.
//!
//! ```console
//! $ turnbuckle-interop-rmcp-server stdio|http
//! ```

// Older clients are tested with features that the newest revision deprecates.
#![allow(deprecated)]

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, InputRequiredResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
    transport::{
        stdio,
        streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch, time::sleep};

const GREETING: &str = "workbench://greeting";
const TONES: [&str; 3] = ["warm", "wary", "plain"];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let workbench = Workbench::default();
    if std::env::args().nth(1).as_deref() == Some("stdio") {
        workbench.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    let sessions = Arc::new(LocalSessionManager::default());
    let service =
        StreamableHttpService::new(move || Ok(workbench.clone()), sessions, Default::default());
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}

/// A clone shares the same state: on HTTP each request may get one.
#[derive(Clone, Default)]
struct Workbench {
    given_up: Arc<AtomicUsize>,
    touched: Arc<watch::Sender<()>>,
}

/// The outcome of a client request.
enum Answered {
    Yet(Value),
    /// The client must send the input and call again.
    Not(CallToolResponse),
}

impl Workbench {
    async fn count(
        &self,
        to: u64,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        if let Some(token) = context.meta.get_progress_token() {
            for step in 1..=to {
                let progress = json!({ "progressToken": token, "progress": step, "total": to });
                context
                    .peer
                    .notify_progress(typed(progress))
                    .await
                    .map_err(broken)?;
            }
        }
        Ok(format!("counted to {to}"))
    }

    async fn wait(&self, seconds: f64, context: &RequestContext<RoleServer>) -> String {
        tokio::select! {
            () = sleep(Duration::from_secs_f64(seconds)) => {}
            () = context.ct.cancelled() => {
                self.given_up.fetch_add(1, Ordering::Relaxed);
            }
        }
        "waited".to_owned()
    }

    async fn touch(&self, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        if modern(context) {
            // The package acknowledges a subscription before it is active.
            while self.touched.receiver_count() == 0 {
                sleep(Duration::from_millis(10)).await;
            }
            self.touched.send_replace(());
        } else {
            let update = json!({ "uri": GREETING });
            context
                .peer
                .notify_resource_updated(typed(update))
                .await
                .map_err(broken)?;
        }
        Ok("touched".to_owned())
    }

    async fn log(&self, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        if !modern(context) || context.meta.log_level().is_some() {
            let message = json!({ "level": LoggingLevel::Info, "data": "at work" });
            context
                .peer
                .notify_logging_message(typed(message))
                .await
                .map_err(broken)?;
        }
        Ok("logged".to_owned())
    }

    /// Sends a client request in the form of the request's era.
    async fn client_request(
        &self,
        method: &str,
        params: Value,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answered, ErrorData> {
        if modern(context) {
            let handlers = request.input_responses.as_ref();
            return Ok(match handlers.and_then(|handlers| handlers.get(method)) {
                Some(answer) => Answered::Yet(answer.clone()),
                None => Answered::Not(required(method, params).into()),
            });
        }
        let peer = &context.peer;
        let answer = match method {
            "elicitation/create" => peer.create_elicitation(typed(params)).await.map(to_json),
            "sampling/createMessage" => peer.create_message(typed(params)).await.map(to_json),
            _ => peer.list_roots().await.map(to_json),
        };
        answer.map(Answered::Yet).map_err(broken)
    }
}

impl ServerHandler for Workbench {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::default();
        config.capabilities = typed(json!({
            "tools": {}, "prompts": {}, "completions": {}, "logging": {},
            "resources": { "subscribe": true, "listChanged": true }
        }));
        config.server_info = typed(json!({ "name": "workbench", "version": "1" }));
        config.instructions = Some("Try everything.".to_owned());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = json!({ "type": "number" });
        let mut add = tool("add", json!({ "a": number, "b": number }));
        add["outputSchema"] =
            json!({ "type": "object", "properties": { "sum": number }, "required": ["sum"] });
        Ok(typed(json!({ "tools": [
            tool("echo", json!({ "text": { "type": "string" } })),
            add,
            tool("count", json!({ "to": { "type": "integer" } })),
            tool("wait", json!({ "seconds": number })),
            tool("given_up", json!({})),
            tool("touch", json!({})),
            tool("log", json!({})),
            tool("ask", json!({})),
            tool("visit", json!({})),
            tool("summarize", json!({})),
            tool("places", json!({})),
        ] })))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = to_json(&request.arguments);
        let answer = match &*request.name {
            "echo" => argument(&arguments, "text")?,
            "add" => {
                let sum = argument::<f64>(&arguments, "a")? + argument::<f64>(&arguments, "b")?;
                let sum = json!({ "sum": sum });
                let mut result = say(&sum.to_string());
                result["structuredContent"] = sum;
                return Ok(CallToolResponse::Complete(typed(result)));
            }
            "count" => self.count(argument(&arguments, "to")?, &context).await?,
            "wait" => self.wait(argument(&arguments, "seconds")?, &context).await,
            "given_up" => self.given_up.load(Ordering::Relaxed).to_string(),
            "touch" => self.touch(&context).await?,
            "log" => self.log(&context).await?,
            "ask" | "visit" | "summarize" | "places" => {
                let (method, params) = asked_by(&request.name);
                match self
                    .client_request(method, params, &request, &context)
                    .await?
                {
                    Answered::Yet(answer) => describe_response(&request.name, &answer),
                    Answered::Not(response) => return Ok(response),
                }
            }
            name => {
                let message = format!("unknown tool {name}");
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(CallToolResponse::Complete(typed(say(&answer))))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(typed(
            json!({ "resources": [{ "uri": GREETING, "name": "greeting", "mimeType": "text/plain" }] }),
        ))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(typed(
            json!({ "resourceTemplates": [{ "uriTemplate": "workbench://number/{n}", "name": "number" }] }),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match request.uri.strip_prefix("workbench://number/") {
            Some(number) => number,
            None if request.uri == GREETING => "Hello.",
            None => {
                return Err(ErrorData::resource_not_found(
                    "there is no such resource",
                    None,
                ));
            }
        };
        Ok(ReadResourceResponse::Complete(typed(
            json!({ "contents": [{ "uri": request.uri, "text": text }] }),
        )))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments =
            json!([{ "name": "name", "required": true }, { "name": "tone", "required": true }]);
        Ok(typed(
            json!({ "prompts": [{ "name": "greet", "arguments": arguments }] }),
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = to_json(&request.arguments);
        let (name, tone): (String, String) =
            (argument(&arguments, "name")?, argument(&arguments, "tone")?);
        let text = format!("Greet {name} in a {tone} tone.");
        let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
        Ok(GetPromptResponse::Complete(typed(
            json!({ "messages": [message] }),
        )))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let begun = &request.argument.value;
        let tones = TONES.iter().filter(|tone| tone.starts_with(begun.as_str()));
        Ok(typed(
            json!({ "completion": { "values": tones.collect::<Vec<_>>() } }),
        ))
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut touched = self.touched.subscribe();
        loop {
            tokio::select! {
                _ = touched.changed() => {
                    let notified = context.sink().notify_resource_updated(GREETING).await;
                    notified.map_err(broken)?;
                }
                () = context.cancelled() => return Ok(()),
            }
        }
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= "2026-07-28")
}

/// A client request of a tool.
fn asked_by(tool: &str) -> (&'static str, Value) {
    let text = json!({ "type": "text", "text": "Sum up." });
    let properties =
        json!({ "name": { "type": "string" }, "formal": { "type": "boolean", "default": true } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["name"] });
    match tool {
        "ask" => (
            "elicitation/create",
            json!({ "mode": "form", "message": "Who is there?", "requestedSchema": schema }),
        ),
        "visit" => (
            "elicitation/create",
            json!({ "mode": "url", "message": "Log in.", "url": "https://example.com/login", "elicitationId": "1" }),
        ),
        "summarize" => (
            "sampling/createMessage",
            json!({ "messages": [{ "role": "user", "content": text }], "maxTokens": 10 }),
        ),
        _ => ("roots/list", json!({})),
    }
}

fn required(method: &str, params: Value) -> InputRequiredResult {
    let question = typed(json!({ "method": method, "params": params }));
    let questions = BTreeMap::from([(method.to_owned(), question)]);
    InputRequiredResult::new(Some(questions), Some("asked".to_owned()))
}

fn describe_response(tool: &str, answer: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match tool {
        "ask" if answer["action"] == "accept" => {
            let name = word(&answer["content"]["name"]);
            if answer["content"]["formal"] == false {
                format!("Hi, {name}.")
            } else {
                format!("Good day, {name}.")
            }
        }
        "ask" | "visit" => format!("The answer was {}.", word(&answer["action"])),
        "summarize" => word(&answer["content"]["text"]),
        _ => word(&answer["roots"][0]["uri"]),
    }
}

fn tool(name: &str, properties: Value) -> Value {
    let required: Vec<_> = properties.as_object().into_iter().flatten().collect();
    let required: Vec<_> = required.into_iter().map(|(name, _)| name).collect();
    json!({ "name": name, "inputSchema": {
        "type": "object", "properties": properties, "required": required
    } })
}

fn say(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn argument<T: DeserializeOwned>(arguments: &Value, name: &str) -> Result<T, ErrorData> {
    T::deserialize(&arguments[name])
        .map_err(|error| ErrorData::invalid_params(format!("`{name}`: {error}"), None))
}

fn broken(error: impl Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn to_json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("the types of the wire are JSON")
}

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("written for this type")
}
