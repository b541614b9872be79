//! Keys that `#[tool]` does not support, or not with this value.
#![allow(unused)]

use turnbuckle::{ToolError, tool};

#[tool(readonly)]
async fn unknown() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(read_only, title = "A", read_only)]
async fn twice() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(read_only = true, title, crate)]
async fn wrong_values() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool("forecast")]
async fn no_key() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(name = "two words")]
async fn bad_name() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(scopes = "files:write, \"files\"")]
async fn bad_scopes() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(scopes = SCOPES)]
async fn scopes_elsewhere() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn zählen() -> Result<String, ToolError> {
    Ok(String::new())
}

/// Written elsewhere:
#[doc = include_str!("tool_keys.rs")]
#[tool]
async fn documented_elsewhere() -> Result<String, ToolError> {
    Ok(String::new())
}

fn main() {}
