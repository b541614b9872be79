//! A client that responds to a server's requests: forms, URLs, sampling and roots.
//!
//! ```console
//! $ cargo example client_callbacks --features client -- --check
//! ```
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Context, Elicitation, SamplingBuilder, Server, Tool, ToolError,
    client::{
        Client, ElicitationAction, FormRequest, LifecycleMode, Roots, SamplingRequest,
        UrlElicitationRequest,
    },
    memory, types,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number of loaves.
    loaves: u8,
}

/// Sends every kind of client request.
async fn bake(cx: Context) -> Result<String, ToolError> {
    let Some(order) = cx
        .elicit(Elicitation::form::<Order>("How many?"))
        .await?
        .accepted()
    else {
        return Ok("no bread today".to_owned());
    };
    let payment = Elicitation::url("Please pay here.", "https://bakery.example/pay");
    let paid = cx.elicit(payment).await?.accepted().is_some();
    let slogan = cx
        .sample("slogan", SamplingBuilder::text("Praise our bread."))
        .await?;
    let roots = cx.roots("roots").await?;
    Ok(format!(
        "{} loaves, paid: {paid}, {:?}, for {}",
        order.loaves,
        slogan.text(),
        roots.first().map_or("an unknown folder", |root| &root.uri),
    ))
}

/// Each callback declares a capability to the server.
fn client() -> Result<turnbuckle::client::ClientBuilder, Box<dyn Error>> {
    Ok(Client::builder("guest", "1.0.0")
        .on_form_elicitation(|form: FormRequest| async move {
            println!("the server wants to know: {}", form.message());
            // Content that does not match the form is an error here, and is not sent.
            form.accept(json!({ "loaves": 2 }))
        })
        .on_url_elicitation(|visit: UrlElicitationRequest| async move {
            println!("the server sends us to {}", visit.host());
            ElicitationAction::Accept
        })
        .on_sampling(|request: SamplingRequest| async move {
            println!(
                "the server asks the model for {} tokens",
                request.max_tokens
            );
            Ok(types::CreateMessageResult::new("none", "Crisp!"))
        })
        .roots(Roots::new(["file:///home/ada"])?))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The same callbacks handle client requests (legacy) and input requests (modern).
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let server = Server::new("bakery", "1.0.0").tool(Tool::new("bake", bake));
        let client = memory::connect_with(client()?.lifecycle_mode(era), server).await?;

        let output = client.call_tool("bake", json!({})).await?;

        println!("{}\n", output.text());
        assert_eq!(
            output.text(),
            r#"2 loaves, paid: true, "Crisp!", for file:///home/ada"#
        );
    }
    Ok(())
}
