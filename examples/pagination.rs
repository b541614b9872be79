//! Pagination: long lists in pages, for clients that follow the cursor.
//!
//! Without `page_size` every list is one page, because some clients ignore the cursor.
//!
//! ```console
//! $ cargo example pagination                # on stdio
//! $ cargo example pagination -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/pagination.rs"]
mod check;

use std::error::Error;

use turnbuckle::{Resource, Server, stdio};

fn server() -> Server {
    let server = Server::new("library", "1.0.0").page_size(4);
    (1..=10).fold(server, |server, number| {
        let uri = format!("book://{number}");
        server.resource(Resource::text(
            uri,
            format!("book {number}"),
            "Once upon a time …",
        ))
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
