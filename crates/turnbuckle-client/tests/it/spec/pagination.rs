//! Paginated lists.

use serde_json::{Value, json};
use turnbuckle_client::{CallError, Client};
use turnbuckle_spec_coverage::req;

use crate::servers::mock_ndjson::{EVERY, MockServer};

/// The lists of all revisions: method, member, and an entry.
fn lists() -> [(&'static str, &'static str, Value); 4] {
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    let resource = json!({ "name": "r", "uri": "file:///r" });
    let template = json!({ "name": "t", "uriTemplate": "file:///{r}" });
    [
        ("tools/list", "tools", tool),
        ("resources/list", "resources", resource),
        ("resources/templates/list", "resourceTemplates", template),
        ("prompts/list", "prompts", json!({ "name": "p" })),
    ]
}

async fn count(client: &Client, method: &str) -> Result<usize, CallError> {
    Ok(match method {
        "tools/list" => client.tools().all().await?.len(),
        "resources/list" => client.resources().all().await?.len(),
        "resources/templates/list" => client.resource_templates().all().await?.len(),
        _ => client.prompts().all().await?.len(),
    })
}

/// Opaque cursors.
const CURSORS: [&str; 5] = [
    " page 2 ",
    "{\"page\":3}",
    "\u{0} \n世界🦀 =?&%00",
    "eyJwYWdlIjo1fQ==",
    "5",
];

#[tokio::test(start_paused = true)]
async fn pages_of_any_size_are_fetched_with_unchanged_cursors() {
    req!(
        "pagination.operations",
        "pagination.page-size",
        "pagination.client.opaque"
    );
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let client = server.connect().await;
        for (method, member, entry) in lists() {
            // Pages of 0, 7, 1, 0, 30 and 2 entries: the size of a page does not mark the end.
            let sizes = [0, 7, 1, 0, 30, 2];
            let pages = sizes.iter().enumerate().map(|(page, size)| {
                let mut result = json!({ member: vec![entry.clone(); *size] });
                if let Some(cursor) = CURSORS.get(page) {
                    result["nextCursor"] = json!(cursor);
                }
                result
            });
            server.respond_in_order(method, pages);

            let found = count(&client, method).await.unwrap();

            assert_eq!(found, sizes.iter().sum::<usize>(), "{revision} {method}");
            let first = server.next(method).await;
            assert!(first["params"].get("cursor").is_none(), "{first}");
            for cursor in CURSORS {
                let requested = server.next(method).await;
                assert_eq!(requested["params"]["cursor"], cursor, "{revision} {method}");
            }
            server.expect_no_message().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_cursor_is_a_cursor() {
    req!("pagination.client.empty-cursor");
    for revision in EVERY {
        let server = MockServer::for_revision(revision);
        let client = server.connect().await;
        for (method, member, entry) in lists() {
            server.respond_in_order(
                method,
                [
                    json!({ member: [entry], "nextCursor": "" }),
                    json!({ member: [entry] }),
                ],
            );

            assert_eq!(
                count(&client, method).await.unwrap(),
                2,
                "{revision} {method}"
            );

            server.next(method).await;
            assert_eq!(server.next(method).await["params"]["cursor"], "");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_cursor_is_an_error() {
    for (method, member, _) in lists() {
        let server = MockServer::modern();
        let client = server.connect().await;
        let mut turn = 0;
        server.on(method, move |_| {
            turn += 1;
            let cursor = ["a", "b", "c"][turn % 3];
            json!({ member: [], "nextCursor": cursor })
        });

        let error = count(&client, method).await.unwrap_err();

        assert!(matches!(error, CallError::EndlessList { .. }), "{error:?}");
        assert!(server.count(method) <= 4);
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_page_can_be_requested() {
    let server = MockServer::modern();
    server.respond("tools/list", json!({ "tools": [], "nextCursor": "2" }));
    let client = server.connect().await;

    let page = client.list_tools(Some("1".to_owned())).await.unwrap();

    assert_eq!(page.next_cursor.as_deref(), Some("2"));
    assert_eq!(server.next("tools/list").await["params"]["cursor"], "1");
    assert_eq!(server.count("tools/list"), 1);
}
