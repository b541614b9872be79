//! Tests of the mock server, with handwritten bytes.

use super::*;

async fn reported(reader: &mut BufReader<ReadHalf<DuplexStream>>) -> Value {
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_mock_responds_by_script_and_records_messages() {
    let server = MockServer::modern();
    server.respond_in_order("tools/list", [json!({ "tools": [] })]);
    let (reader, mut writer) = server.client_streams();
    let mut reader = BufReader::new(reader);

    for (id, method) in [(1, "tools/list"), (2, "tools/list"), (3, "no/such")] {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string() + "\n";
        writer.write_all(line.as_bytes()).await.unwrap();
    }

    assert_eq!(
        reported(&mut reader).await["result"]["resultType"],
        "complete"
    );
    assert_eq!(reported(&mut reader).await["error"]["code"], -32603);
    assert_eq!(reported(&mut reader).await["error"]["code"], -32601);
    assert_eq!(server.next("tools/list").await["id"], 1);
    assert_eq!(server.next("tools/list").await["id"], 2);
    assert_eq!(server.methods(), ["tools/list", "tools/list", "no/such"]);
    server.expect_no_message().await;
}

#[tokio::test(start_paused = true)]
async fn the_mock_sends_requests_withholds_responses_and_closes() {
    let server = MockServer::legacy("2025-11-25");
    server.withhold("tools/call");
    let (reader, mut writer) = server.client_streams();
    let mut reader = BufReader::new(reader);
    writer
        .write_all(b"{\"id\":7,\"method\":\"tools/call\"}\n")
        .await
        .unwrap();

    let call = server.next("tools/call").await;
    server.reply(&call, json!({ "content": [] })).await;
    let id = server.request("ping", json!({})).await;

    assert_eq!(reported(&mut reader).await["id"], 7);
    assert_eq!(reported(&mut reader).await["id"], id);
    let response = json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string() + "\n";
    writer.write_all(response.as_bytes()).await.unwrap();
    assert_eq!(server.next_response(id).await["result"], json!({}));
    server.close().await;
    let mut rest = String::new();
    assert_eq!(reader.read_line(&mut rest).await.unwrap(), 0);
    drop((reader, writer));
    server.client_closed().await;
}
