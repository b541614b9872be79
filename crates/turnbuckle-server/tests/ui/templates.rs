//! Functions that cannot be resource templates.

use turnbuckle_server::{RequestError, ResourceTemplate};

async fn without_variables() -> Result<String, RequestError> {
    Ok(String::new())
}

fn main() {
    let _ = ResourceTemplate::new("a://{a}", "a", without_variables);
}
