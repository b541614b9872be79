//! A client in a few lines, for the `--check` of the examples.
//!
//! It joins a server by a pipe in memory, prints what goes over it, and answers what the server asks, in either way that
//! clients are asked. Real clients are programs of their own; this one only shows that an example does what it says.
#![allow(dead_code, reason = "each example uses the part that it needs")]
#![expect(clippy::print_stdout, reason = "the examples show what they do")]

use std::{collections::VecDeque, error::Error};

use serde_json::{Map, Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use turnbuckle::Server;

pub(crate) type Checked<T = ()> = Result<T, Box<dyn Error>>;

/// Says whether the example was started with `--check`.
pub(crate) fn is_wanted() -> bool {
    std::env::args().any(|argument| argument == "--check")
}

/// What a user, a model or an editor says: method and parameters of a question in, the result back.
type Answer = Box<dyn FnMut(&str, &Value) -> Value + Send>;

pub(crate) struct Client {
    requests: WriteHalf<DuplexStream>,
    answers: Lines<BufReader<ReadHalf<DuplexStream>>>,
    last_id: u64,
    /// What every request says about its sender; the progress token is added to it.
    about: Value,
    answer: Answer,
    /// Notifications that nobody has asked for yet.
    heard: VecDeque<Value>,
}

impl Client {
    /// Joins as a client of 2026-07-28: without a handshake, every request says what it needs to.
    pub(crate) fn join(server: Server) -> Self {
        let mut client = Self::connect(server);
        client.about = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "debug",
        });
        client
    }

    /// Joins as a client of an earlier revision, which says once what it can do.
    pub(crate) async fn shake_hands(
        server: Server,
        revision: &str,
        capabilities: Value,
    ) -> Checked<Self> {
        let mut client = Self::connect(server);
        let params = json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": { "name": "check", "version": "1.0.0" },
        });
        let agreed = client.call("initialize", params).await?;
        assert_eq!(agreed["protocolVersion"], revision);
        client
            .notify("notifications/initialized", json!({}))
            .await?;
        Ok(client)
    }

    fn connect(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        tokio::spawn(turnbuckle::ndjson::serve(reader, writer, server));
        let (answers, requests) = tokio::io::split(ours);
        Self {
            requests,
            answers: BufReader::new(answers).lines(),
            last_id: 0,
            about: json!({}),
            answer: Box::new(|method, _| panic!("nobody is there to answer `{method}`")),
            heard: VecDeque::new(),
        }
    }

    /// Says with every request what the client can do.
    pub(crate) fn offering(mut self, capabilities: Value) -> Self {
        self.about["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        self
    }

    /// Wants to hear log messages of this level and above.
    pub(crate) fn log_level(&mut self, level: &str) {
        self.about["io.modelcontextprotocol/logLevel"] = level.into();
    }

    /// Answers questions in this way.
    pub(crate) fn answering(
        mut self,
        answer: impl FnMut(&str, &Value) -> Value + Send + 'static,
    ) -> Self {
        self.answer = Box::new(answer);
        self
    }

    /// Calls a tool, and returns its result.
    pub(crate) async fn tool(&mut self, name: &str, arguments: Value) -> Checked<Value> {
        let params = json!({ "name": name, "arguments": arguments });
        self.call("tools/call", params).await
    }

    /// Calls a method, as often as it takes to answer the server's questions, and returns the result.
    pub(crate) async fn call(&mut self, method: &str, mut params: Value) -> Checked<Value> {
        loop {
            let id = self.begin(method, params.clone()).await?;
            let mut message = self.answer_to(id).await?;
            let Some(result) = message.get_mut("result") else {
                return Err(format!("this is not a result: {message}").into());
            };
            if result["resultType"] != "input_required" {
                return Ok(result.take());
            }
            let questions = result["inputRequests"].as_object().into_iter().flatten();
            let answers: Map<String, Value> = questions
                .map(|(key, question)| (key.clone(), self.answer_question(question)))
                .collect();
            params["inputResponses"] = answers.into();
            params["requestState"] = result["requestState"].take();
        }
    }

    /// Calls a method that must be refused, and returns the error.
    pub(crate) async fn refused(&mut self, method: &str, params: Value) -> Checked<Value> {
        let id = self.begin(method, params).await?;
        let mut message = self.answer_to(id).await?;
        match message.get_mut("error") {
            Some(error) => Ok(error.take()),
            None => Err(format!("this is not an error: {message}").into()),
        }
    }

    /// Sends a request and does not wait for its answer; returns its id.
    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> Checked<u64> {
        println!("> {}", shortened(&format!("{method} {params}")));
        self.last_id += 1;
        let id = self.last_id;
        params["_meta"] = self.about.clone();
        params["_meta"]["progressToken"] = id.into();
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        Ok(id)
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) -> Checked {
        println!("> {}", shortened(&format!("{method} {params}")));
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await
    }

    /// Waits for the answer to a request, and keeps what is heard meanwhile.
    pub(crate) async fn answer_to(&mut self, id: u64) -> Checked<Value> {
        loop {
            let message = self.next().await?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            self.heard.push_back(message);
        }
    }

    /// Returns the parameters of the next notification of this kind; waits for it if it has not come yet.
    pub(crate) async fn heard(&mut self, method: &str) -> Checked<Value> {
        loop {
            if let Some(at) = self.heard.iter().position(|it| it["method"] == method) {
                let message = self.heard.remove(at);
                return Ok(message.map_or(Value::Null, |mut it| it["params"].take()));
            }
            let message = self.next().await?;
            self.heard.push_back(message);
        }
    }

    /// Says whether a notification of this kind has come that nobody has asked for yet.
    pub(crate) fn has_heard(&self, method: &str) -> bool {
        self.heard.iter().any(|it| it["method"] == method)
    }

    /// What the user, the model or the editor says to a question.
    pub(crate) fn answer_question(&mut self, question: &Value) -> Value {
        let method = question["method"].as_str().unwrap_or_default();
        (self.answer)(method, &question["params"])
    }

    /// The next message that is no question; those are answered.
    async fn next(&mut self) -> Checked<Value> {
        loop {
            let line = self
                .answers
                .next_line()
                .await?
                .ok_or("the server hung up")?;
            println!("< {}", shortened(&line));
            let message: Value = serde_json::from_str(&line)?;
            if message.get("method").is_none() || message.get("id").is_none() {
                return Ok(message);
            }
            let result = self.answer_question(&message);
            self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
                .await?;
        }
    }

    async fn send(&mut self, message: Value) -> Checked {
        let line = format!("{message}\n");
        Ok(self.requests.write_all(line.as_bytes()).await?)
    }
}

/// The text of a tool's result.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(150) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
