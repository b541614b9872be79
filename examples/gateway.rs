//! A gateway: one server in front of several others, of any revision and transport.
//!
//! Names of tools begin with the name of their server, and `delete_*` is hidden.
//!
//! ```console
//! $ cargo example gateway --features gateway -- notes=http://127.0.0.1:8080/mcp clock=http://127.0.0.1:8081/mcp
//! $ cargo example gateway --features gateway -- --check       # with servers of its own
//! ```
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use serde_json::json;
use tokio::net::TcpListener;
use turnbuckle::{
    Server, Tool,
    client::{Target, http::HttpTarget},
    gateway::{Gateway, RunningGateway, Upstream},
    http, memory, stdio,
};

/// Connects to servers given as `NAME=URL`.
async fn start(servers: &[String]) -> Result<RunningGateway, Box<dyn Error>> {
    let mut gateway = Gateway::new("gateway", "1.0.0");
    for server in servers {
        let (name, url) = server.split_once('=').ok_or("usage: gateway NAME=URL …")?;
        let url = url.to_owned();
        let target = move || Target::from(HttpTarget::new(url.as_str()));
        gateway = gateway.upstream(Upstream::new(name, target).deny(["delete_*"]));
    }
    Ok(gateway.start().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let servers: Vec<_> = std::env::args().skip(1).collect();
    if servers == ["--check"] {
        return check().await;
    }
    let gateway = start(&servers).await?;
    stdio::serve(gateway.server()).await?;
    gateway.close().await;
    Ok(())
}

/// Serves two servers on loopback ports, and calls them through the gateway.
async fn check() -> Result<(), Box<dyn Error>> {
    let mut servers = Vec::new();
    for name in ["notes", "clock"] {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        servers.push(format!("{name}=http://{}/mcp", listener.local_addr()?));
        let server = Server::new(name, "1.0.0")
            .tool(Tool::new("read", async || Ok("nothing new".to_owned())))
            .tool(Tool::new("delete_all", async || Ok("gone".to_owned())));
        tokio::spawn(http::serve(listener, server));
    }
    let gateway = start(&servers).await?;
    let client = memory::connect(gateway.server()).await?;
    let tools = client.tools().all().await?;
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    println!("{}", names.join(" "));
    let text = client.call_tool("notes_read", json!({})).await?.text();
    println!("{text}");
    assert_eq!(names, ["notes_read", "clock_read"]);
    assert_eq!(text, "nothing new");
    gateway.close().await;
    Ok(())
}
