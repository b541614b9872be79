//! A turnbuckle server on HTTP in memory, in both eras and on both transports.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use turnbuckle_client::{Client, ClientBuilder, Era, LifecycleMode, http::HttpTarget};
use turnbuckle_server::{
    Context, Server, Tool, ToolError,
    http::{self as server_http, HttpSse},
};
use turnbuckle_spec_coverage::req;

/// Serves in memory; returns a function that creates a target.
fn serve(server: Server) -> impl Fn(&str) -> HttpTarget {
    let (connector, listener) = server_http::memory();
    let http = server_http::Http::new(server)
        .allow_host("own.test")
        .http_sse(HttpSse::new());
    tokio::spawn(http.serve(listener));
    move |path| {
        let connector = connector.clone();
        HttpTarget::new(format!("http://own.test{path}")).connector(move || {
            let connector = connector.clone();
            async move { connector.connect().await }
        })
    }
}

fn any() -> Value {
    json!({ "type": "object" })
}

async fn greeting(args: Value) -> Result<String, ToolError> {
    Ok(format!(
        "Hello, {}!",
        args["name"].as_str().unwrap_or("you")
    ))
}

async fn count(_: Value, cx: Context) -> Result<String, ToolError> {
    for step in 1..=3 {
        cx.progress(step, 3).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok("counted".to_owned())
}

fn greeter() -> Server {
    Server::new("greeter", "1.0")
        .tool(Tool::raw(
            "greet",
            any(),
            async |args: Value, _: Context| greeting(args).await,
        ))
        .tool(Tool::raw("count", any(), count))
}

fn builder(era: LifecycleMode) -> ClientBuilder {
    Client::builder("test", "1.0").lifecycle_mode(era)
}

const ERAS: [LifecycleMode; 3] = [
    LifecycleMode::Auto,
    LifecycleMode::Modern,
    LifecycleMode::Legacy,
];

#[tokio::test(start_paused = true)]
async fn tools_are_called_in_both_eras() {
    for era in ERAS {
        let at = serve(greeter());
        let client = builder(era).connect(at("/mcp")).await.unwrap();

        for name in ["Ada", "Grace"] {
            let output = client
                .call_tool("greet", json!({ "name": name }))
                .await
                .unwrap();
            let greeting = format!("Hello, {name}!");
            assert_eq!(output.content[0].as_text(), Some(greeting.as_str()));
        }

        let expected = match era {
            LifecycleMode::Legacy => Era::Legacy,
            _ => Era::Modern,
        };
        assert_eq!(client.server().era, expected);
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported_while_a_tool_runs() {
    for (era, path) in [
        (LifecycleMode::Modern, "/mcp"),
        (LifecycleMode::Legacy, "/mcp"),
        (LifecycleMode::Legacy, "/sse"),
    ] {
        let at = serve(greeter());
        let client = builder(era).connect(at(path)).await.unwrap();
        let (sender, mut received) = mpsc::unbounded_channel();

        let call = client.call_tool("count", json!({}));
        let output = call.on_progress(move |_| sender.send(()).unwrap()).await;

        assert_eq!(output.unwrap().content[0].as_text(), Some("counted"));
        let mut steps = 0;
        while received.try_recv().is_ok() {
            steps += 1;
        }
        assert_eq!(steps, 3, "{era:?} {path}");
    }
}

/// Reports that the tool has started, and that it was dropped.
#[derive(Default)]
struct ToolState {
    started: Notify,
    dropped: Notify,
}

struct NotifyOnDrop(Arc<ToolState>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.dropped.notify_one();
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_stops_the_tool() {
    for (era, path) in [
        (LifecycleMode::Modern, "/mcp"),
        (LifecycleMode::Legacy, "/mcp"),
        (LifecycleMode::Legacy, "/sse"),
    ] {
        let tool_state = Arc::new(ToolState::default());
        let state = Arc::clone(&tool_state);
        let server =
            Server::new("slow", "1").tool(Tool::raw("wait", any(), move |_: Value, _: Context| {
                let state = Arc::clone(&state);
                async move {
                    let _dropped = NotifyOnDrop(Arc::clone(&state));
                    state.started.notify_one();
                    std::future::pending::<()>().await;
                    Ok(String::new())
                }
            }));
        let at = serve(server);
        let client = builder(era).connect(at(path)).await.unwrap();
        let call = tokio::spawn(client.call_tool("wait", json!({})).into_future());
        tool_state.started.notified().await;

        call.abort();

        tool_state.dropped.notified().await;
        assert!(client.list_tools(None).await.is_ok(), "{era:?} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn http_sse_is_detected() {
    req!(
        "httpsse.compat.client-legacy",
        "httpsse.compat.client-modern"
    );
    for era in [LifecycleMode::Auto, LifecycleMode::Legacy] {
        let at = serve(greeter());

        let found = builder(era).connect(at("/sse")).await.unwrap();
        let explicit = builder(era)
            .connect(at("/sse").http_sse_only())
            .await
            .unwrap();

        for client in [found, explicit] {
            let output = client.call_tool("greet", json!({})).await.unwrap();
            assert_eq!(output.content[0].as_text(), Some("Hello, you!"));
            assert_eq!(client.server().era, Era::Legacy);
            client.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_path_is_reported_with_its_status() {
    for era in [LifecycleMode::Auto, LifecycleMode::Legacy] {
        let at = serve(greeter());

        let error = builder(era).connect(at("/elsewhere")).await.unwrap_err();

        assert!(format!("{error:?}").contains("404"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_response_is_complete() {
    let server =
        Server::new("large", "1").tool(Tool::raw("large", any(), async |_: Value, _: Context| {
            Ok("x".repeat(3_000_000))
        }));
    let at = serve(server);
    for path in ["/mcp", "/sse"] {
        let client = builder(LifecycleMode::Auto)
            .connect(at(path))
            .await
            .unwrap();

        let output = client.call_tool("large", json!({})).await.unwrap();

        assert_eq!(output.content[0].as_text().unwrap().len(), 3_000_000);
    }
}
