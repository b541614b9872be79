//! Tools: typed arguments, structured output, hints for clients, and errors that a model can act on.
//!
//! ```console
//! $ cargo example tools                # on stdio
//! $ cargo example tools -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/tools.rs"]
mod check;

use std::error::Error;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use turnbuckle::{Server, Tool, ToolError, stdio};

/// The arguments. Doc comments are their descriptions.
#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// The amount in the smallest unit: cents, pence.
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

/// The result: structured content, and text for older clients.
#[derive(Serialize, JsonSchema)]
struct Converted {
    /// The converted amount.
    amount: u32,
    /// The currency of the amount.
    currency: Currency,
}

async fn convert(args: Convert) -> Result<Converted, ToolError> {
    let percent = match args.to {
        Currency::Eur => 100,
        Currency::Gbp => 85,
        Currency::Chf => {
            // For the model: it can inform the user, or try another currency.
            return Err(ToolError::new(
                "the rate for CHF is unknown today; EUR and GBP are available",
            ));
        }
    };
    Ok(Converted {
        amount: args.amount / 100 * percent,
        currency: args.to,
    })
}

/// An internal error is logged, and the model gets its incident id.
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
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
