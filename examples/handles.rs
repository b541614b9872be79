//! State between calls without a session: a cart that the model passes from call to call.
//!
//! A small value is sealed into its handle, and the server stores nothing; a larger one is in the server's store. Any instance
//! with the same secret can read it, and no other.
//!
//! ```console
//! $ cargo example handles              # on stdio
//! $ cargo example handles -- --check   # calls itself and prints the responses
//! ```

#[path = "support/request.rs"]
mod request;

use std::{error::Error, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle::{Context, Handle, HandleValue, Server, Tool, ToolError, stdio};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The state that the handle contains.
#[derive(Default, Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
}

impl HandleValue for Cart {
    const NAME: &'static str = "cart";
}

/// A value that is too long for a model to repeat.
#[derive(Serialize, Deserialize)]
struct Receipt {
    lines: Vec<String>,
}

impl HandleValue for Receipt {
    const NAME: &'static str = "receipt";
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The cart that the last call returned; omit it to start a new one.
    cart: Option<Handle<Cart>>,
    /// The item to add.
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct Pay {
    /// The cart that the last call returned.
    cart: Handle<Cart>,
}

#[derive(Deserialize, JsonSchema)]
struct Print {
    /// The receipt that `pay` returned.
    receipt: Handle<Receipt>,
}

async fn add(args: Add, cx: Context) -> Result<Handle<Cart>, ToolError> {
    let mut cart = match &args.cart {
        Some(handle) => cx.resolve_handle(handle).await?,
        None => Cart::default(),
    };
    cart.items.push(args.item);
    Ok(cx.create_handle(&cart, DAY)?)
}

async fn pay(args: Pay, cx: Context) -> Result<Handle<Receipt>, ToolError> {
    let cart = cx.resolve_handle(&args.cart).await?;
    let lines = cart.items.iter().map(|item| format!("paid: {item}"));
    let receipt = Receipt {
        lines: lines.collect(),
    };
    Ok(cx.store_handle(&receipt, DAY).await?)
}

async fn print(args: Print, cx: Context) -> Result<String, ToolError> {
    Ok(cx.resolve_handle(&args.receipt).await?.lines.join("\n"))
}

fn shop() -> Server {
    Server::new("shop", "1.0.0")
        // Use `.state_keys([secret])` if several instances share a secret; by default each has its own.
        .tool(Tool::new("add", add).description("Puts something into a cart"))
        .tool(Tool::new("pay", pay).description("Pays for what is in a cart"))
        .tool(Tool::new("print", print).description("Prints a receipt"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|argument| argument == "--check") {
        return check(&shop()).await;
    }
    stdio::serve(shop()).await?;
    Ok(())
}

/// Makes a few independent calls; the last one passes a cart instead of a receipt.
async fn check(shop: &Server) -> Result<(), Box<dyn Error>> {
    let cart = request::call(shop, "add", json!({ "item": "tea" })).await?;
    let cart = &cart["content"][0]["text"];
    let cart = request::call(shop, "add", json!({ "cart": cart, "item": "cups" })).await?;
    let cart = &cart["content"][0]["text"];
    let receipt = request::call(shop, "pay", json!({ "cart": cart })).await?;
    let receipt = &receipt["content"][0]["text"];
    let printed = request::call(shop, "print", json!({ "receipt": receipt })).await?;
    let refused = request::call(shop, "print", json!({ "receipt": cart })).await?;
    let as_expected =
        printed["content"][0]["text"] == "paid: tea\npaid: cups" && refused["isError"] == true;
    as_expected
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}
