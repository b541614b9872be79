//! Functions that cannot be raw tools.

use serde_json::{Value, json};
use turnbuckle_server::{Context, Tool, ToolError};

async fn swapped(_: Context, _: Value) -> Result<String, ToolError> {
    Ok(String::new())
}

async fn borrowed(_: &Value) -> Result<String, ToolError> {
    Ok(String::new())
}

fn main() {
    let _ = Tool::raw("a", json!({}), swapped);
    let _ = Tool::raw("b", json!({}), borrowed);
}
