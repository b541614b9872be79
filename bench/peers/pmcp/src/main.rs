//! The measured server on pmcp, as its documentation shows it for concurrent requests.
//!
//! ```console
//! $ turnbuckle-bench-pmcp --listen ADDRESS | --stdio [--tools N] [--more]
//! ```

#[path = "../../contract.rs"]
mod contract;

use std::sync::{Arc, OnceLock, Weak};

use axum::Router;
use contract::{
    ADD, ANNOUNCE, Add, Contract, DONE, ECHO, Echo, FOUND, Failure, Order, STEP_COUNT, STEPS,
    ServeOn, Sum, TOLD, extra_tools,
};
use pmcp::{
    Server, ServerBuilder, ServerCapabilities, TypedToolWithOutput,
    server::axum_router::concurrent_router,
    types::{
        CallToolResult, Content, ServerNotification, ToolCapabilities,
        protocol::{LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28, ProtocolVersion},
    },
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let contract = Contract::from_process(&[])?;
    let itself = Itself::default();
    let server = server(&contract, &itself)?;
    match contract.place {
        ServeOn::Stdio => server.run_stdio().await?,
        ServeOn::Http(address) => {
            let server = Arc::new(server);
            itself.get_or_init(|| Arc::downgrade(&server));
            let listener = TcpListener::bind(address).await?;
            eprintln!("listening on http://{}/mcp", listener.local_addr()?);
            // It serves `/`; every other server serves `/mcp`.
            let app = Router::new().nest("/mcp", concurrent_router(server));
            axum::serve(listener, app).await?;
        }
    }
    Ok(())
}

/// The server, for its own tools: only it can notify, and a tool does not receive it.
type Itself = Arc<OnceLock<Weak<Server>>>;

fn server(contract: &Contract, itself: &Itself) -> pmcp::Result<Server> {
    let mut server = Server::builder()
        .name("echo")
        .version("0.1.0")
        .capabilities(capabilities(contract))
        // Without this it rejects the newest revision.
        .with_supported_protocol_versions(
            [LATEST_PROTOCOL_VERSION, PROTOCOL_VERSION_2026_07_28]
                .map(|version| ProtocolVersion(version.to_owned())),
        );
    server = with_basics(server);
    for (name, description) in extra_tools(contract.extra) {
        server = server.tool_with_result_and_description(name, description, |_: Order, _| {
            Box::pin(async { Ok(text(FOUND)) })
        });
    }
    if contract.more {
        server = with_more(server, Arc::clone(itself));
    }
    server.build()
}

fn capabilities(contract: &Contract) -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::tools_only();
    if contract.more {
        let list_changed = Some(true);
        capabilities.tools = Some(ToolCapabilities { list_changed });
    }
    capabilities
}

fn with_basics(server: ServerBuilder) -> ServerBuilder {
    let add = TypedToolWithOutput::new("add", |Add { a, b }, _| {
        Box::pin(async move { Ok(Sum { sum: a + b }) })
    });
    server
        // A tool that returns a string has it in quotation marks in its result.
        .tool_with_result_and_description("echo", ECHO, |Echo { message }, _| {
            Box::pin(async { Ok(text(message)) })
        })
        .tool("add", add.with_description(ADD))
}

fn with_more(server: ServerBuilder, itself: Itself) -> ServerBuilder {
    server
        .tool_with_result_and_description("steps", STEPS, |NoArgs {}, extra| {
            Box::pin(async move {
                for step in 1..=STEP_COUNT {
                    let total = Some(STEP_COUNT.into());
                    extra.report_progress(step.into(), total, None).await?;
                }
                Ok(text(DONE))
            })
        })
        .tool_with_result_and_description("announce", ANNOUNCE, move |NoArgs {}, _| {
            let server = itself.get().and_then(Weak::upgrade);
            Box::pin(async move {
                if let Some(server) = server {
                    let changed = ServerNotification::ToolsChanged;
                    server.send_notification(changed).await;
                }
                Ok(text(TOLD))
            })
        })
}

#[derive(Deserialize, JsonSchema)]
struct NoArgs {}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::new(vec![Content::text(text.into())])
}
