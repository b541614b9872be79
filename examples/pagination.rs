//! Pages: long lists in parts, for clients that follow the cursor.
//!
//! Without `page_size` every list is one page, since not every client asks for the next.
//!
//! ```console
//! $ cargo run -q --example pagination                # on stdio
//! $ cargo run -q --example pagination -- --check     # asks itself and prints the answers
//! ```

mod check;

use check::{Checked, Client};
use serde_json::{Value, json};
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
async fn main() -> Checked {
    if check::is_wanted() {
        return ask(Client::join(server())).await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask(mut client: Client) -> Checked {
    let mut sizes = Vec::new();
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let mut page = client.call("resources/list", params).await?;
        let books = page["resources"].as_array().into_iter().flatten();
        let page_names: Vec<_> = books.map(|book| book["name"].clone()).collect();
        sizes.push(page_names.len());
        names.extend(page_names);
        match page["nextCursor"].take() {
            Value::Null => break,
            // Only the server knows what a cursor means.
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!(sizes, [4, 4, 2]);
    assert_eq!(names.first(), Some(&json!("book 1")));
    assert_eq!(names.last(), Some(&json!("book 10")));

    let made_up = json!({ "cursor": "2" });
    let error = client.refused("resources/list", made_up).await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
