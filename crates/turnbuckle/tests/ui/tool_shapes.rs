//! Functions that cannot be tools, and items other than functions.
#![allow(unused)]

use turnbuckle::{ToolError, tool};

#[tool]
fn not_async() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool(blocking)]
async fn both() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn generic<T>(value: T) -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn bounded(name: String) -> Result<String, ToolError>
where
    String: Clone,
{
    Ok(name)
}

#[tool]
async unsafe fn dangerous() -> Result<String, ToolError> {
    Ok(String::new())
}

#[tool]
async fn returns_nothing() {}

#[tool]
async fn returns_a_pair() -> (u8, u8) {
    (1, 2)
}

#[tool]
struct Forecast;

struct Notes;

impl Notes {
    #[tool]
    async fn add(&self, /** What to remember. */ text: String) -> Result<String, ToolError> {
        Ok(text)
    }
}

fn main() {}
