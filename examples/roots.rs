//! Roots: a tool requests the folders in which the user works.
//!
//! ```console
//! $ cargo example roots                # on stdio
//! $ cargo example roots -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/roots.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Serialize;
use turnbuckle::{ClientRequestError, Context, Server, Tool, ToolError, stdio};

#[derive(Serialize, JsonSchema)]
struct Project {
    /// The name of the project.
    name: String,
    /// The URI of the project.
    uri: String,
}

async fn projects(cx: Context) -> Result<Vec<Project>, ToolError> {
    let roots = match cx.roots("roots").await {
        Ok(roots) => roots,
        // Not every client has roots. A tool that works without them handles the error.
        Err(ClientRequestError::MissingCapability { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let project = |root: turnbuckle::types::Root| Project {
        name: root.name.unwrap_or_else(|| "unnamed".to_owned()),
        uri: root.uri,
    };
    Ok(roots.into_iter().map(project).collect())
}

fn server() -> Server {
    Server::new("projects", "1.0.0").tool(
        Tool::new("projects", projects)
            .description("Lists what the user works on")
            .read_only(),
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
