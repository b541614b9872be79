//! Pagination of lists.

use serde_json::{Value, json};
use turnbuckle_server::{Context, ResourceTemplate, Server, Tool, Variables};
use turnbuckle_spec_coverage::req;

use crate::ndjson::test_client::{LEGACY, Peer, modern};

fn server() -> Server {
    (0..5).fold(Server::new("lists", "1").page_size(2), |server, at| {
        server.tool(Tool::new(format!("tool{at}"), async || Ok(String::new())))
    })
}

async fn names(peer: &mut Peer, wrap: fn(Value) -> Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut params = json!({});
    loop {
        let response = peer.call("tools/list", wrap(params)).await;
        let tools = response["result"]["tools"].as_array().unwrap();
        assert!(tools.len() <= 2);
        names.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match response["result"].get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return names,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pages_contain_each_item_once_in_both_eras() {
    req!("pagination.server.stable");

    for revision in LEGACY {
        let mut peer = Peer::initialized(server(), revision, json!({})).await;
        let all: Vec<_> = (0..5).map(|at| format!("tool{at}")).collect();

        assert_eq!(names(&mut peer, |params| params).await, all);
        assert_eq!(names(&mut peer, modern).await, all);
    }
}

#[tokio::test(start_paused = true)]
async fn an_invented_cursor_is_rejected() {
    req!(
        "pagination.server.invalid-graceful",
        "pagination.server.invalid-code"
    );

    for revision in LEGACY {
        let mut peer = Peer::initialized(server(), revision, json!({})).await;
        let page = peer.call("tools/list", json!({})).await;
        let cursor = page["result"]["nextCursor"].as_str().unwrap();
        let mut tampered = cursor.to_owned();
        let last = if tampered.pop() == Some('A') {
            'B'
        } else {
            'A'
        };
        tampered.push(last);
        let mut foreign = Peer::initialized(server(), revision, json!({})).await;

        let theirs = foreign
            .call("tools/list", json!({ "cursor": cursor }))
            .await;
        assert_eq!(theirs["error"]["code"], -32602);
        for cursor in [
            json!(tampered),
            json!(""),
            json!("2"),
            json!("\u{0}"),
            json!(2),
        ] {
            for params in [
                json!({ "cursor": cursor }),
                modern(json!({ "cursor": cursor })),
            ] {
                let response = peer.call("tools/list", params).await;
                assert_eq!(response["error"]["code"], -32602, "{cursor}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_is_added_and_removed_at_runtime() {
    let server = Server::new("notes", "1");
    let mut peer = Peer::new(server.clone());
    let read = async |peer: &mut Peer| {
        let params = json!({ "uri": "notes://today" });
        peer.call_modern("resources/read", params).await
    };
    assert_eq!(read(&mut peer).await["error"]["code"], -32601);

    server.add_template(ResourceTemplate::new(
        "notes://{day}",
        "notes",
        async |_: Variables, _: Context| Ok("nothing new"),
    ));
    let contents = &read(&mut peer).await["result"]["contents"];
    assert_eq!(contents[0]["text"], "nothing new");
    assert!(server.remove_template("notes://{day}"));
    assert!(!server.remove_template("notes://{day}"));

    assert_eq!(read(&mut peer).await["error"]["code"], -32602);
}
