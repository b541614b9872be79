//! Functions that cannot be tools.

use serde::Deserialize;
use turnbuckle_server::{Context, Tool, ToolError};

#[derive(Deserialize)]
struct Undescribed {
    name: String,
}

async fn without_result(cx: Context) -> String {
    cx.server().name().to_owned()
}

async fn without_schema(args: Undescribed) -> Result<String, ToolError> {
    Ok(args.name)
}

async fn other_error() -> std::io::Result<String> {
    Ok(String::new())
}

fn not_async() -> Result<String, ToolError> {
    Ok(String::new())
}

fn main() {
    let _ = Tool::new("a", without_result);
    let _ = Tool::new("b", without_schema);
    let _ = Tool::new("c", other_error);
    let _ = Tool::new("d", not_async);
    let _ = Tool::infallible("e", not_async);
    let _ = Tool::blocking("f", without_result);
}
