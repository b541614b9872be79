//! Elicitation: a tool asks the user, by a form or by sending them to a web page.
//!
//! ```console
//! $ cargo run -q --example elicitation                # on stdio
//! $ cargo run -q --example elicitation -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client, text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use turnbuckle::{Context, Elicitation, ElicitationOutcome, Server, Tool, ToolError, stdio};

/// The form. Doc comments are what the user reads beside its fields.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// How many loaves.
    loaves: u8,
    /// Which bread.
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
    // The key names the question. It stays the same when the handler runs again with the answer.
    match cx
        .elicit(Elicitation::form::<Order>("What may it be?").key("order"))
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
    // What must not pass through the client, as a card number, belongs on a page of your own.
    let question = Elicitation::url("Please pay here.", "https://bakery.example/pay/42");
    match cx.elicit(question.key("payment")).await?.accepted() {
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
async fn main() -> Checked {
    if check::is_wanted() {
        return ask().await;
    }
    Ok(stdio::serve(server()).await?)
}

/// What the user does.
fn user(method: &str, params: &Value) -> Value {
    assert_eq!(method, "elicitation/create");
    if params["mode"] == "url" {
        assert_eq!(params["url"], "https://bakery.example/pay/42");
        return json!({ "action": "accept" });
    }
    let form = &params["requestedSchema"];
    assert_eq!(form["required"], json!(["loaves", "kind"]));
    assert_eq!(form["properties"]["kind"]["enum"], json!(["Rye", "Wheat"]));
    json!({ "action": "accept", "content": { "loaves": 2, "kind": "Rye" } })
}

async fn ask() -> Checked {
    let can_ask = json!({ "elicitation": { "form": {}, "url": {} } });

    // A client of 2026 gets the question as a result, and calls again with the answer.
    let client = Client::join(server()).offering(can_ask.clone());
    let mut client = client.answering(user);
    let result = client.tool("order", json!({})).await?;
    assert_eq!(text(&result), "2 Rye, no remark");
    let result = client.tool("pay", json!({})).await?;
    assert!(text(&result).starts_with("The user went"), "{result}");

    // A client of 2025 gets it as a request while the call waits.
    let client = Client::shake_hands(server(), "2025-11-25", can_ask.clone()).await?;
    let mut client = client.answering(user);
    let result = client.tool("order", json!({})).await?;
    assert_eq!(text(&result), "2 Rye, no remark");
    let result = client.tool("pay", json!({})).await?;
    assert!(text(&result).starts_with("The user went"), "{result}");

    // Users may say no.
    let client = Client::join(server()).offering(can_ask);
    let mut client = client.answering(|_, _| json!({ "action": "decline" }));
    let result = client.tool("order", json!({})).await?;
    assert_eq!(text(&result), "The user wants no bread.");
    Ok(())
}
