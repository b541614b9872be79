//! Tools: typed arguments, structured output, hints for clients, and errors that a model can act on.
//!
//! ```console
//! $ cargo run -q --example tools                # on stdio
//! $ cargo run -q --example tools -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle::{Server, Tool, ToolError, stdio};

/// What the model has to say. The doc comments are its descriptions.
#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// How much, in the smallest unit: cents, pence.
    amount: u32,
    /// The currency to convert to.
    to: Currency,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Currency {
    Eur,
    Gbp,
    Chf,
}

/// What comes back: as structured content, and as text for clients that know nothing else.
#[derive(Serialize, JsonSchema)]
struct Converted {
    /// How much it is.
    amount: u32,
    /// Of what.
    currency: Currency,
}

async fn convert(args: Convert) -> Result<Converted, ToolError> {
    let percent = match args.to {
        Currency::Eur => 100,
        Currency::Gbp => 85,
        Currency::Chf => {
            // Written for the model: it can tell the user, or try another currency.
            return Err(ToolError::new(
                "there is no rate for CHF today; EUR and GBP can be had",
            ));
        }
    };
    Ok(Converted {
        amount: args.amount / 100 * percent,
        currency: args.to,
    })
}

/// An error that is not made for the model stays in the log, under an id that the model gets.
async fn statement() -> Result<String, ToolError> {
    Ok(std::fs::read_to_string("/nowhere/statement.txt")?)
}

fn server() -> Server {
    Server::new("bank", "1.0.0")
        .tool(
            Tool::new("convert", convert)
                .title("Convert money")
                .description("Converts an amount of euros")
                .read_only()
                .idempotent()
                .open_world(false),
        )
        .tool(Tool::new("statement", statement).description("Shows the last statement"))
}

#[tokio::main]
async fn main() -> Checked {
    if check::is_wanted() {
        return ask(Client::join(server())).await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask(mut client: Client) -> Checked {
    let list = client.call("tools/list", json!({})).await?;
    let tool = &list["tools"][0];
    assert_eq!(tool["inputSchema"]["required"], json!(["amount", "to"]));
    assert_eq!(tool["outputSchema"]["type"], "object");
    assert_eq!(
        tool["annotations"],
        json!({ "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false })
    );

    let arguments = json!({ "amount": 2000, "to": "GBP" });
    let result = client.tool("convert", arguments).await?;
    assert_eq!(
        result["structuredContent"],
        json!({ "amount": 1700, "currency": "GBP" })
    );

    // Arguments that do not fit never reach the function, and the model learns what was expected.
    let arguments = json!({ "amount": "much", "to": "GBP" });
    let result = client.tool("convert", arguments).await?;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("amount"), "{result}");

    let arguments = json!({ "amount": 2000, "to": "CHF" });
    let result = client.tool("convert", arguments).await?;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("EUR and GBP"), "{result}");

    let result = client.tool("statement", json!({})).await?;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("incident"), "{result}");
    assert!(!text(&result).contains("No such file"), "{result}");

    let error = client
        .refused("tools/call", json!({ "name": "steal" }))
        .await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
