//! State between calls without a session: a cart that the model carries from call to call.
//!
//! A small value is sealed into its handle, so that nothing stays on the server; a larger one is kept in its store. Any
//! instance with the same secret can go on, and nobody else can look inside.
//!
//! ```console
//! $ cargo run -q --example handles              # on stdio
//! $ cargo run -q --example handles -- --check   # asks itself and prints the answers
//! ```

mod ask;

use std::{error::Error, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use turnbuckle::{Context, Handle, HandleValue, Server, Tool, ToolError, stdio};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the model carries around.
#[derive(Default, Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
}

impl HandleValue for Cart {
    const NAME: &'static str = "cart";
}

/// What is too long to be repeated by a model.
#[derive(Serialize, Deserialize)]
struct Receipt {
    lines: Vec<String>,
}

impl HandleValue for Receipt {
    const NAME: &'static str = "receipt";
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The cart as the last call returned it; leave it out to begin a new one.
    cart: Option<Handle<Cart>>,
    /// What to put into it.
    item: String,
}

#[derive(Deserialize, JsonSchema)]
struct Pay {
    /// The cart as the last call returned it.
    cart: Handle<Cart>,
}

#[derive(Deserialize, JsonSchema)]
struct Print {
    /// What `pay` returned.
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
        // Say `.state_keys([secret])` where several instances share a secret; by default each has its own.
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

/// Goes shopping, each call on its own; in the end with a cart where a receipt belongs.
async fn check(shop: &Server) -> Result<(), Box<dyn Error>> {
    let cart = ask::call(shop, "add", json!({ "item": "tea" })).await?;
    let cart = &cart["content"][0]["text"];
    let cart = ask::call(shop, "add", json!({ "cart": cart, "item": "cups" })).await?;
    let cart = &cart["content"][0]["text"];
    let receipt = ask::call(shop, "pay", json!({ "cart": cart })).await?;
    let receipt = &receipt["content"][0]["text"];
    let printed = ask::call(shop, "print", json!({ "receipt": receipt })).await?;
    let refused = ask::call(shop, "print", json!({ "receipt": cart })).await?;
    let as_expected =
        printed["content"][0]["text"] == "paid: tea\npaid: cups" && refused["isError"] == true;
    as_expected
        .then_some(())
        .ok_or_else(|| "the answers are not as expected".into())
}
