//! Resources of every kind.

use serde::Deserialize;
use turnbuckle_protocol::types::Icon;
use turnbuckle_server::{Context, Resource, ResourceTemplate, Server};

pub(crate) fn register(server: Server) -> Server {
    let server = server
        .resource(
            Resource::text("good://greeting", "greeting", "Hello.")
                .title("Greeting")
                .description("A text that does not change")
                .mime_type("text/plain")
                .icon(Icon::new("https://example.com/hello.png").mime_type("image/png")),
        )
        .resource(
            Resource::bytes("good://dot", "dot", "image/png", vec![0; 3])
                .description("An invalid image"),
        )
        .resource(
            Resource::text(
                "ui://good/panel",
                "panel",
                "<!doctype html><title>Panel</title>",
            )
            .description("A page with two buttons")
            .mime_type("text/html;profile=mcp-app"),
        )
        .resource(
            Resource::text("good://last", "last", "{}")
                .description("The resource on the last page")
                .mime_type("application/json"),
        );
    ["days", "months", "years", "eras"]
        .into_iter()
        .fold(server, |server, name| server.template(about(name)))
}

#[derive(Deserialize)]
struct Which {
    which: String,
}

fn about(name: &'static str) -> ResourceTemplate {
    let template = format!("good://{name}/{{which}}");
    ResourceTemplate::new(template, name, async move |which: Which, _: Context| {
        Ok(format!("About {}.", which.which))
    })
    .description("Describes one item")
    .mime_type("text/plain")
    .complete("which", ["first", "second", "last"])
}
