//! Servers mounted in a server: each part is a complete server, and one server serves all of them.
//!
//! Tools and prompts get a prefix, resources keep their URIs. Later changes of a part apply to the whole server, and clients
//! are notified.
//!
//! ```console
//! $ cargo example mount              # on stdio
//! $ cargo example mount -- --check   # calls itself and prints the responses
//! ```

#[path = "support/request.rs"]
mod request;

use std::error::Error;

use serde_json::{Value, json};
use turnbuckle::{Context, Resource, Server, Tool, stdio};

/// A part that also works alone.
fn clock() -> Server {
    Server::new("clock", "1.0.0").tool(
        Tool::new("now", async || Ok("half past nine".to_owned()))
            .description("Tells the time")
            .read_only(),
    )
}

/// Another part, with a resource.
fn notes() -> Server {
    Server::new("notes", "1.0.0")
        .tool(
            Tool::new("search", async || Ok("nothing found".to_owned()))
                .description("Searches the notes")
                .read_only(),
        )
        .resource(Resource::text("notes://motd", "motd", "Nothing new today."))
}

fn desk(notes: &Server) -> Server {
    Server::new("desk", "1.0.0")
        .instructions("A clock and a notebook.")
        .tool(
            // A mounted handler runs as part of the server that received the request.
            Tool::new("about", async |cx: Context| {
                Ok(format!("This is {}.", cx.server().name()))
            })
            .description("Says what this is"),
        )
        .mount("clock", clock())
        .mount("notes", notes.clone())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let notes = notes();
    let desk = desk(&notes);
    if std::env::args().any(|argument| argument == "--check") {
        return check(&desk, &notes).await;
    }
    stdio::serve(desk).await?;
    Ok(())
}

/// Calls the mounted tools, and checks that a later change of a part applies.
async fn check(desk: &Server, notes: &Server) -> Result<(), Box<dyn Error>> {
    let before = names(desk).await?;
    request::call(desk, "clock_now", json!({})).await?;
    request::send(desk, "resources/read", json!({ "uri": "notes://motd" })).await?;
    notes.add_tool(
        Tool::new("write", async || Ok("written".to_owned())).description("Writes a note"),
    );
    desk.remove_mount("clock");
    let after = names(desk).await?;
    let as_expected = before == ["about", "clock_now", "notes_search"]
        && after == ["about", "notes_search", "notes_write"];
    as_expected
        .then_some(())
        .ok_or_else(|| "the tools are not as expected".into())
}

async fn names(server: &Server) -> Result<Vec<String>, Box<dyn Error>> {
    let listed = request::send(server, "tools/list", json!({})).await?;
    let tools = listed["tools"].as_array().ok_or("the list is missing")?;
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    Ok(tools.iter().filter_map(name).collect())
}
