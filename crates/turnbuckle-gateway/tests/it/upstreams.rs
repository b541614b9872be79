//! Upstream servers in memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_gateway::{Gateway, RunningGateway, Upstream};
use turnbuckle_protocol::{Principal, types::LogLevel};
use turnbuckle_server::{
    Context, Elicitation, Prompt, Resource, SamplingBuilder, Server, Tool, ToolError,
    ndjson::NdjsonServer, testing::PeerBuilder,
};

/// Both eras of an upstream server.
pub(crate) const ERAS: [LifecycleMode; 2] = [LifecycleMode::Legacy, LifecycleMode::Modern];

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    /// Your name.
    name: String,
}

async fn greet(args: Greet, cx: Context) -> Result<String, ToolError> {
    cx.progress(1, 2).await;
    cx.log(LogLevel::Info, "greeting").await;
    if args.name.is_empty() {
        return Err(ToolError::new("the name is empty"));
    }
    Ok(format!("Hello, {}!", args.name))
}

async fn sign(cx: Context) -> Result<String, ToolError> {
    let name = cx
        .elicit(Elicitation::form::<Name>("Who signs?").key("name"))
        .await?;
    let name = name.accepted().map_or("unknown".to_owned(), |it| it.name);
    let text = cx.sample("text", SamplingBuilder::text("Dear all")).await?;
    Ok(format!("{}, {name}", text.text()))
}

async fn roots(cx: Context) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    let uris: Vec<_> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(uris.join(" "))
}

async fn sleep() -> Result<String, ToolError> {
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    Ok("awake".to_owned())
}

async fn change(cx: Context) -> Result<String, ToolError> {
    cx.tools_changed();
    cx.resource_updated("desk://note");
    Ok("changed".to_owned())
}

/// A server with a tool for each feature.
pub(crate) fn desk() -> Server {
    Server::new("desk", "1.0.0")
        .instructions("Write letters.")
        .tool(Tool::new("greet", greet))
        .tool(Tool::new("sign", sign))
        .tool(Tool::new("roots", roots))
        .tool(Tool::new("sleep", sleep))
        .tool(Tool::new("change", change))
        .prompt(Prompt::new("letter", async || {
            Ok("Write a letter.".to_owned())
        }))
        .resource(Resource::text("desk://note", "note", "buy milk"))
}

/// Counts the connections to a server.
#[derive(Clone, Default)]
pub(crate) struct ConnectionCount {
    opened: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl ConnectionCount {
    pub(crate) fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn guard(&self) -> OpenGuard {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        OpenGuard(Arc::clone(&self.open))
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

/// Counts an open connection.
pub(crate) struct OpenGuard(Arc<AtomicUsize>);

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Returns an upstream server in memory.
pub(crate) fn upstream(name: &str, mode: LifecycleMode, server: Server) -> Upstream {
    counted(name, mode, server, &ConnectionCount::default())
}

/// Returns an upstream server in memory, and counts its connections.
pub(crate) fn counted(
    name: &str,
    mode: LifecycleMode,
    server: Server,
    count: &ConnectionCount,
) -> Upstream {
    let count = count.clone();
    Upstream::new(name, move || connect(server.clone(), count.guard())).lifecycle_mode(mode)
}

/// Returns an upstream server in memory that is used with the credentials of each caller.
pub(crate) fn per_caller(name: &str, mode: LifecycleMode, server: Server) -> Upstream {
    let count = ConnectionCount::default();
    Upstream::per_caller(name, move |_| connect(server.clone(), count.guard())).lifecycle_mode(mode)
}

/// Serves a new connection.
fn connect(server: Server, open: OpenGuard) -> Target {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(async move {
        let _open = open;
        let _ = turnbuckle_server::ndjson::serve(reader, writer, server).await;
    });
    let (reader, writer) = tokio::io::split(near);
    Target::from(NdjsonClient::new(reader, writer))
}

/// Starts a gateway to one server.
pub(crate) async fn gateway(mode: LifecycleMode) -> RunningGateway {
    start([upstream("desk", mode, desk())]).await
}

/// Starts a gateway to some servers.
pub(crate) async fn start(upstreams: impl IntoIterator<Item = Upstream>) -> RunningGateway {
    let gateway = Gateway::new("gateway", "1.0.0");
    let gateway = upstreams.into_iter().fold(gateway, Gateway::upstream);
    gateway.start().await.expect("the servers can be reached")
}

/// Returns an authenticated client.
pub(crate) fn peer_of(gateway: &RunningGateway, subject: &str) -> PeerBuilder {
    let principal = Principal::new("https://issuer.example", subject);
    PeerBuilder::ndjson(NdjsonServer::new(gateway.server()).principal(principal))
}

/// A client that responds to every request.
pub(crate) fn client(method: &str, _params: &Value) -> Value {
    match method {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "sampling/createMessage" => json!({
            "role": "assistant", "model": "m", "content": { "type": "text", "text": "Yours" },
        }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///home/ada" }] }),
        other => panic!("asked {other}"),
    }
}
