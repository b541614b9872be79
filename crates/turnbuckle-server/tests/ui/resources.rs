//! Functions that cannot be resources.

use turnbuckle_server::{RequestError, Resource, Variables};

async fn of_variables(_: Variables) -> Result<String, RequestError> {
    Ok(String::new())
}

fn main() {
    let _ = Resource::new("a://a", "a", of_variables);
}
