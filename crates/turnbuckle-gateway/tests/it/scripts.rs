//! Legacy servers that respond as a test says.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream},
    sync::broadcast,
};
use turnbuckle_client::{LifecycleMode, Target, ndjson::NdjsonClient};
use turnbuckle_gateway::{Sharing, Upstream};

type Respond = dyn Fn(&str, &Value) -> Value + Send + Sync;

/// A legacy server that all callers share.
#[derive(Clone)]
pub(crate) struct Script {
    respond: Arc<Respond>,
    notifications: broadcast::Sender<Value>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    is_down: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
}

impl Script {
    /// Responds to requests with the results of a function; `null` is an empty result.
    pub(crate) fn new(respond: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) -> Self {
        Self {
            respond: Arc::new(respond),
            notifications: broadcast::channel(2_000).0,
            requests: Arc::default(),
            is_down: Arc::default(),
            open: Arc::default(),
        }
    }

    pub(crate) fn upstream(&self, name: &str) -> Upstream {
        let script = self.clone();
        let upstream = Upstream::new(name, move || {
            let (near, far) = tokio::io::duplex(1024 * 1024);
            if !script.is_down.load(Ordering::SeqCst) {
                let script = script.clone();
                tokio::spawn(async move {
                    script.open.fetch_add(1, Ordering::SeqCst);
                    script.clone().serve(far).await;
                    script.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
            let (reader, writer) = tokio::io::split(near);
            Target::from(NdjsonClient::new(reader, writer))
        });
        let upstream = upstream.lifecycle_mode(LifecycleMode::Legacy);
        upstream.sharing(Sharing::All)
    }

    /// Sends a notification on all connections.
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let _ = self.notifications.send(message);
    }

    /// Ends all connections, and accepts no new ones while `down`.
    pub(crate) fn set_down(&self, down: bool) {
        self.is_down.store(down, Ordering::SeqCst);
        let _ = self.notifications.send(Value::Null);
    }

    /// Returns the parameters of all requests with a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let of_method = requests.iter().filter(|(name, _)| name == method);
        of_method.map(|(_, params)| params.clone()).collect()
    }

    /// Returns the number of open connections.
    pub(crate) fn open_connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    async fn serve(self, stream: DuplexStream) {
        let mut notifications = self.notifications.subscribe();
        let (reader, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(reader).lines();
        loop {
            let message = tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => self.answer(&serde_json::from_str(&line).unwrap()),
                    _ => return,
                },
                Ok(notification) = notifications.recv() => Some(notification),
            };
            match message {
                Some(Value::Null) if self.is_down.load(Ordering::SeqCst) => return,
                Some(Value::Null) | None => {}
                Some(message) => {
                    let _ = writer.write_all(format!("{message}\n").as_bytes()).await;
                }
            }
        }
    }

    fn answer(&self, message: &Value) -> Option<Value> {
        let id = message.get("id")?;
        let method = message.get("method")?.as_str()?;
        let params = &message["params"];
        let requests = &self.requests;
        requests
            .lock()
            .unwrap()
            .push((method.to_owned(), params.clone()));
        let result = match (self.respond)(method, params) {
            Value::Null if method == "initialize" => initialized(&json!({
                "tools": { "listChanged": true },
                "prompts": { "listChanged": true },
                "resources": { "listChanged": true, "subscribe": true },
            })),
            Value::Null => json!({}),
            result => result,
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }
}

/// The result of `initialize` with capabilities.
pub(crate) fn initialized(capabilities: &Value) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "serverInfo": { "name": "script", "version": "1" },
    })
}

/// Tools with these names.
pub(crate) fn tools(names: &[impl AsRef<str>]) -> Value {
    let tools = names
        .iter()
        .map(|name| json!({ "name": name.as_ref(), "inputSchema": { "type": "object" } }));
    json!({ "tools": tools.collect::<Vec<_>>() })
}

/// Resources with these URIs.
pub(crate) fn resources(uris: &[&str]) -> Value {
    let resources = uris.iter().map(|uri| json!({ "uri": uri, "name": "x" }));
    json!({ "resources": resources.collect::<Vec<_>>() })
}

/// The result of a tool with a text.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// The member of all items of a list.
pub(crate) fn members(result: &Value, list: &str, member: &str) -> Vec<String> {
    let items = result[list].as_array().unwrap().iter();
    items
        .map(|item| item[member].as_str().unwrap().to_owned())
        .collect()
}
