//! Asks the server of `everything.rs` for everything, and prints what it answers.
//!
//! A client in a few lines: it writes requests into a pipe in memory, reads answers from another, and answers the
//! server's questions when a result says that input is required.
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use turnbuckle::Server;

pub(crate) async fn run(server: Server) -> Result<(), Box<dyn Error>> {
    let mut client = Client::join(server);
    let wanted = json!({ "toolsListChanged": true, "resourceSubscriptions": ["notes://all"] });
    client.listen(json!({ "notifications": wanted })).await?;
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({ "name": "add", "arguments": { "text": "Water the plants" } }),
        ),
        (
            "tools/call",
            json!({ "name": "add", "arguments": { "text": " " } }),
        ),
        (
            "tools/call",
            json!({ "name": "find", "arguments": { "text": "plants" } }),
        ),
        ("tools/call", json!({ "name": "count_words" })),
        (
            "tools/call",
            json!({ "name": "remind", "arguments": { "text": "Feed the cat", "seconds": 0.1 } }),
        ),
        ("tools/call", json!({ "name": "tidy" })),
        ("tools/call", json!({ "name": "card" })),
        ("tools/call", json!({ "name": "sign" })),
        ("tools/call", json!({ "name": "connect" })),
        ("tools/call", json!({ "name": "summarize" })),
        ("tools/call", json!({ "name": "places" })),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({ "uri": "notes://all" })),
        ("resources/read", json!({ "uri": "notes://pixel" })),
        ("resources/read", json!({ "uri": "notes://note/1" })),
        ("prompts/list", json!({})),
        (
            "prompts/get",
            json!({ "name": "review", "arguments": { "tone": "frank" } }),
        ),
        (
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "notes://note/{number}" },
                "argument": { "name": "number", "value": "" }
            }),
        ),
    ] {
        client.call(method, params).await?;
    }
    Ok(())
}

struct Client {
    requests: WriteHalf<DuplexStream>,
    answers: Lines<BufReader<ReadHalf<DuplexStream>>>,
    last_id: u64,
}

impl Client {
    fn join(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(turnbuckle::lines::serve_lines(reader, writer, server));
        let (answers, requests) = tokio::io::split(ours);
        Self {
            requests,
            answers: BufReader::new(answers).lines(),
            last_id: 0,
        }
    }

    /// Subscribes to changes. The answer comes when the subscription ends; until then, there are notifications.
    async fn listen(&mut self, params: Value) -> Result<(), Box<dyn Error>> {
        self.send("subscriptions/listen", params).await?;
        self.next().await.map(drop)
    }

    /// Calls a method, as often as it takes to see the last page and to answer the server's questions.
    async fn call(&mut self, method: &str, mut params: Value) -> Result<(), Box<dyn Error>> {
        loop {
            self.send(method, params.clone()).await?;
            let mut result = self.result().await?;
            if let Some(questions) = result.get("inputRequests").and_then(Value::as_object) {
                let answers = questions
                    .iter()
                    .map(|(key, question)| (key.clone(), answer_to(question)));
                params["inputResponses"] = Value::Object(answers.collect());
                params["requestState"] = result["requestState"].take();
            } else if let Some(cursor) = result.get_mut("nextCursor") {
                params["cursor"] = cursor.take();
            } else {
                return Ok(());
            }
        }
    }

    async fn send(&mut self, method: &str, mut params: Value) -> Result<(), Box<dyn Error>> {
        println!("> {}", shortened(&format!("{method} {params}")));
        self.last_id += 1;
        params["_meta"] = json!({
            "progressToken": self.last_id,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                { "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} },
            "io.modelcontextprotocol/logLevel": "debug"
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.requests
            .write_all(format!("{request}\n").as_bytes())
            .await?;
        Ok(())
    }

    /// Prints what comes until the last request is answered.
    async fn result(&mut self) -> Result<Value, Box<dyn Error>> {
        loop {
            let mut message = self.next().await?;
            if message["id"] == self.last_id {
                let result = message.get_mut("result").map(Value::take);
                return result.ok_or_else(|| "this is not a result".into());
            }
        }
    }

    async fn next(&mut self) -> Result<Value, Box<dyn Error>> {
        let line = self
            .answers
            .next_line()
            .await?
            .ok_or("the server hung up")?;
        println!("< {}", shortened(&line));
        Ok(serde_json::from_str(&line)?)
    }
}

/// What a user, a model and an editor might say.
fn answer_to(question: &Value) -> Value {
    match question["method"].as_str() {
        Some("elicitation/create") => {
            json!({ "action": "accept", "content": { "name": "Ada Lovelace" } })
        }
        Some("sampling/createMessage") => json!({
            "role": "assistant", "model": "none", "content": { "type": "text", "text": "There is work to do." }
        }),
        _ => json!({ "roots": [{ "uri": "file:///home/ada/engine" }] }),
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(150) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
