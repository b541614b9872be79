//! The self-check of the example `pagination`: a client that calls it and compares the results.

#[path = "../support/client.rs"]
mod client;

pub(super) use client::is_requested;
use client::{CheckResult, Client};
use serde_json::{Value, json};

use super::server;

pub(super) async fn run() -> CheckResult {
    let mut client = Client::connect(server());
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
            // Cursors are opaque to clients.
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!(sizes, [4, 4, 2]);
    assert_eq!(names.first(), Some(&json!("book 1")));
    assert_eq!(names.last(), Some(&json!("book 10")));

    let made_up = json!({ "cursor": "2" });
    let error = client.call_error("resources/list", made_up).await?;
    assert_eq!(error["code"], -32602);
    Ok(())
}
