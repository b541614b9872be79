//! Cursors of the gateway belong to their caller, and lists of servers have an end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use turnbuckle_gateway::Gateway;
use turnbuckle_server::testing::Peer;

use crate::{
    scripts::{Script, members, resources, tools},
    upstreams::{peer_of, start},
};

/// A server with two tools, and a page of resources that is followed by another one.
fn paged() -> Script {
    Script::new(|method, params| match method {
        "tools/list" => tools(&["a", "b"]),
        "resources/list" if params.get("cursor").is_some() => resources(&["y:2"]),
        "resources/list" => {
            let mut page = resources(&["y:1"]);
            page["nextCursor"] = json!("secret");
            page
        }
        _ => Value::Null,
    })
}

#[tokio::test(start_paused = true)]
async fn a_cursor_is_only_valid_for_its_caller() {
    let gateway = Gateway::new("gateway", "1")
        .upstream(paged().upstream("paged"))
        .page_size(1);
    let gateway = gateway.start().await.unwrap();
    for is_modern in [false, true] {
        let connect = |subject: &str| {
            let peer = peer_of(&gateway, subject);
            if is_modern {
                peer.modern()
            } else {
                peer.legacy("2025-11-25")
            }
        };
        let (mut ada, mut eve) = (connect("ada").await, connect("eve").await);
        for method in ["tools/list", "resources/list"] {
            let page = ada.request(method, json!({})).await;
            let cursor = &page.expect_result()["nextCursor"];
            assert!(!cursor.to_string().contains("secret"), "{cursor}");
            let params = json!({ "cursor": cursor });
            let stolen = eve.request(method, params.clone()).await;
            stolen.expect_error(-32602);
            let next = ada.request(method, params).await;
            assert!(next.expect_result().get("nextCursor").is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_resources_without_end_ends_at_the_gateway() {
    let pages = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&pages);
    let endless = Script::new(move |method, _| match method {
        "resources/list" => {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let mut page = resources(&[&format!("x:{number}")]);
            page["nextCursor"] = json!(format!("{number}"));
            page
        }
        _ => Value::Null,
    });
    let gateway = start([endless.upstream("endless"), paged().upstream("paged")]).await;
    let mut peer = Peer::connect(gateway.server()).await;
    let (mut count, mut cursor, mut last) = (0, Value::Null, Vec::new());
    loop {
        let page = peer
            .request("resources/list", json!({ "cursor": cursor }))
            .await;
        let page = page.expect_result();
        last = members(page, "resources", "uri")
            .into_iter()
            .chain(last)
            .take(3)
            .collect();
        count += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
        assert!(count < 2_000, "the list does not end");
    }
    assert!(pages.load(Ordering::SeqCst) <= 1_001);
    // The other server is listed too.
    assert!(last.contains(&"y:2".to_owned()), "{last:?}");
}
