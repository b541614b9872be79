//! Several messages in one array.

use serde_json::json;
use turnbuckle_ledger::req;
use turnbuckle_server::http::{Http, Sessions};

use crate::http_caller::{Caller, initialize, modern, server, tool};

#[tokio::test]
async fn batches_exist_in_one_revision() {
    req!("base.batch.receive", "base.batch.send");
    let batch = json!([
        tool(1, "echo", &json!({ "message": "a" })),
        tool(2, "echo", &json!({ "message": "b" }))
    ]);
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let caller = Caller::new(server()).in_session(version).await;
        assert_eq!(
            caller.post(&batch).await.refusal().await,
            (400, -32600),
            "{version}"
        );
    }
    let caller = Caller::new(server()).in_session("2025-03-26").await;

    let answers = caller.post(&batch).await.json().await;

    let texts: Vec<_> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| {
            (
                answer["id"].clone(),
                answer["result"]["content"][0]["text"].clone(),
            )
        })
        .collect();
    assert_eq!(texts, [(json!(1), json!("a")), (json!(2), json!("b"))]);
}

#[tokio::test]
async fn a_batch_without_requests_is_only_accepted() {
    let caller = Caller::new(server()).in_session("2025-03-26").await;

    let batch = json!([
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        { "jsonrpc": "2.0", "id": 9, "result": {} },
    ]);

    assert_eq!(caller.post(&batch).await.status(), 202);
}

#[tokio::test]
async fn some_things_must_not_be_in_a_batch() {
    let caller = Caller::new(server()).in_session("2025-03-26").await;
    let standing_alone = modern("tools/list", json!({}));

    for batch in [
        json!([]),
        json!([initialize("2025-03-26")]),
        json!([standing_alone]),
    ] {
        assert_eq!(
            caller.post(&batch).await.refusal().await,
            (400, -32600),
            "{batch}"
        );
    }
    let mixed = json!([7, { "jsonrpc": "2.0", "id": 1, "method": "ping" }, { "jsonrpc": "2.0", "id": 1, "method": "ping" }]);
    let answers = caller.post(&mixed).await.json().await;
    assert_eq!(answers[0]["id"], json!(null));
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(answers.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_batch_that_takes_time_is_a_stream_of_answers() {
    let caller = Caller::new(server()).in_session("2025-03-26").await;
    let batch = json!([
        tool(1, "echo", &json!({ "message": "a" })),
        tool(2, "progress", &json!({ "steps": 2 })),
    ]);

    let messages = caller.post(&batch).await.stream().messages().await;

    let answers: Vec<_> = messages
        .iter()
        .filter(|message| message.get("result").is_some())
        .collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(messages.len(), 4);
}

#[tokio::test]
async fn batches_need_no_session_where_there_are_none() {
    req!("versioning.http.header-absent-2025-03-26");
    let mut caller = Caller::of(Http::new(server()).sessions(Sessions::Off));
    let batch = json!([
        tool(1, "progress", &json!({ "steps": 2 })),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
    ]);

    let answers = caller.post(&batch).await.json().await;

    assert_eq!(answers.as_array().unwrap().len(), 1);
    assert_eq!(answers[0]["result"]["content"][0]["text"], "done");
    caller.version = Some("2025-06-18".to_owned());
    assert_eq!(caller.post(&batch).await.refusal().await, (400, -32600));
}
