//! A client that answers what a server asks: the user, the model, the folders.
//!
//! ```console
//! $ cargo run -q --example client_questions -- --check
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
    memory,
    types::CreateMessageResult,
};

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// How many loaves.
    loaves: u8,
}

/// Asks everything that can be asked.
async fn bake(cx: Context) -> Result<String, ToolError> {
    let Some(order) = cx
        .elicit(Elicitation::form::<Order>("How many?").key("order"))
        .await?
        .accepted()
    else {
        return Ok("no bread today".to_owned());
    };
    let payment = Elicitation::url("Please pay here.", "https://bakery.example/pay");
    let paid = cx
        .elicit(payment.key("payment"))
        .await?
        .accepted()
        .is_some();
    let slogan = cx
        .sample("slogan", SamplingBuilder::text("Praise our bread."))
        .await?;
    let roots = cx.roots("roots").await?;
    Ok(format!(
        "{} loaves, paid: {paid}, {:?}, for {}",
        order.loaves,
        slogan.text(),
        roots.first().map_or("nobody", |root| &root.uri),
    ))
}

/// Each callback that is set is a capability that the server is told of.
fn client() -> Result<turnbuckle::client::ClientBuilder, Box<dyn Error>> {
    Ok(Client::builder("guest", "1.0.0")
        .on_form_elicitation(|form: FormRequest| async move {
            println!("the server wants to know: {}", form.message());
            // What does not fit the form is an error here, and is not sent.
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
            Ok(CreateMessageResult::new("none", "Crisp!"))
        })
        .roots(Roots::new(["file:///home/ada"])?))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The same callbacks serve both eras, though the questions come in different ways.
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
