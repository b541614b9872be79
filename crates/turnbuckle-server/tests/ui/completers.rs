//! Functions that cannot be completers.

use turnbuckle_server::{Context, Prompt, RequestError};

async fn prompt() -> Result<String, RequestError> {
    Ok(String::new())
}

async fn without_request(_: Context) -> Result<Vec<String>, RequestError> {
    Ok(Vec::new())
}

fn main() {
    let _ = Prompt::new("a", prompt).complete("name", without_request);
}
