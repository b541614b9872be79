//! Parameters that cannot be arguments.
#![allow(unused)]

use turnbuckle::{Context, ToolError, tool};

#[tool]
async fn taken_apart((left, right): (u8, u8), _: String) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn borrowed(name: &str, names: &[String], cx: &Context) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn opaque(name: impl Into<String>) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn two_contexts(cx: Context, other: turnbuckle::Context) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn described_context(
    /// How to reach the client.
    cx: Context,
) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn sometimes(#[cfg(unix)] name: String) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
#[serde(deny_unknown_fields)]
async fn none_at_all(cx: Context) -> Result<String, ToolError> {
    Ok(String::new())
}

fn main() {}
