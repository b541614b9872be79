//! Functions that cannot be prompts.

use turnbuckle_server::{Prompt, RequestError, ToolError};

async fn error_of_tools() -> Result<String, ToolError> {
    Ok(String::new())
}

async fn number() -> Result<u32, RequestError> {
    Ok(1)
}

fn main() {
    let _ = Prompt::new("a", error_of_tools);
    let _ = Prompt::new("b", number);
}
