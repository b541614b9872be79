//! Resources: text, bytes, one to subscribe to, and a template.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{Context, RequestError, Resource, ResourceTemplate, Server};

use crate::samples::PNG;

/// Registers these resources. A scenario reads the first of them.
pub(crate) fn offer(server: Server) -> Server {
    let pixel = BASE64_STANDARD.decode(PNG).expect("the sample is Base64");
    server
        .resource(
            Resource::text(
                "test://static-text",
                "static-text",
                "This is the content of the static text resource.",
            )
            .description("A text that does not change"),
        )
        .resource(
            Resource::bytes("test://static-binary", "static-binary", "image/png", pixel)
                .description("A picture of one pixel"),
        )
        .resource(
            Resource::text("test://watched-resource", "watched-resource", "Watch me.")
                .description("Something to subscribe to"),
        )
        .template(
            ResourceTemplate::new("test://template/{id}/data", "template", by_id)
                .description("Data by id")
                .mime_type("application/json"),
        )
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

async fn by_id(Id { id }: Id, _: Context) -> Result<String, RequestError> {
    let data = format!("Data for ID: {id}");
    Ok(json!({ "id": id, "templateTest": true, "data": data }).to_string())
}
