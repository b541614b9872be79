//! Elicitation: a tool asks the user, by a form or by a web page.
//!
//! ```console
//! $ cargo example elicitation                # on stdio
//! $ cargo example elicitation -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/elicitation.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{Context, Elicitation, ElicitationOutcome, Server, Tool, ToolError, stdio};

/// The form. Doc comments are the descriptions of its fields.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number of loaves.
    loaves: u8,
    /// The kind of bread.
    kind: Bread,
    /// Anything the baker should know.
    remark: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Bread {
    Rye,
    Wheat,
}

async fn order(cx: Context) -> Result<String, ToolError> {
    match cx
        .elicit(Elicitation::form::<Order>("What may it be?"))
        .await?
    {
        ElicitationOutcome::Accepted(order) => {
            let remark = order.remark.as_deref().unwrap_or("no remark");
            Ok(format!("{} {:?}, {remark}", order.loaves, order.kind))
        }
        ElicitationOutcome::Declined => Ok("The user wants no bread.".to_owned()),
        ElicitationOutcome::Cancelled => Err(ToolError::new(
            "the user closed the form; ask them again later",
        )),
    }
}

async fn pay(cx: Context) -> Result<String, ToolError> {
    // Data that must not pass through the client, such as a card number, belongs on your own web page.
    let page = Elicitation::url("Please pay here.", "https://bakery.example/pay/42");
    match cx.elicit(page).await?.accepted() {
        Some(()) => Ok("The user went to the page; whether they paid, the bank knows.".to_owned()),
        None => Ok("The user does not want to pay.".to_owned()),
    }
}

fn server() -> Server {
    Server::new("bakery", "1.0.0")
        .tool(Tool::new("order", order).description("Takes an order"))
        .tool(Tool::new("pay", pay).description("Asks for the money"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
