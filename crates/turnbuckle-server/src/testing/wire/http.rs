//! Streamable HTTP: a request for every message, and the stream of the session.

use std::{collections::HashMap, future::poll_fn, task::Poll};

use ::http::StatusCode;
use serde_json::Value;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{AbortHandle, JoinSet},
};

use super::Trouble;
use crate::testing::{HttpClient, HttpResponse};

/// What comes from the server, on whichever response.
type Arrival = Result<Value, Trouble>;

/// The requests of one client that are under way. Dropping it breaks their connections.
pub(in crate::testing) struct HttpWire {
    client: HttpClient,
    sender: UnboundedSender<Arrival>,
    arrived: UnboundedReceiver<Arrival>,
    running: HashMap<i64, AbortHandle>,
    tasks: JoinSet<()>,
}

impl HttpWire {
    pub(in crate::testing) fn new(client: HttpClient) -> Self {
        let (sender, arrived) = unbounded_channel();
        Self {
            client,
            sender,
            arrived,
            running: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    pub(super) async fn send(&mut self, message: &Value) -> Result<(), Trouble> {
        match (message["method"].as_str(), message.get("id")) {
            (Some("initialize"), Some(_)) => self.initialize(message).await,
            (Some(_), Some(id)) => {
                let id = id.as_i64();
                self.ask(message, id).await;
                Ok(())
            }
            (method, _) => {
                let response = respond(self.client.clone(), message.clone()).await;
                if response.status() != StatusCode::ACCEPTED {
                    return Err(refusal(response).await);
                }
                if method == Some("notifications/initialized") && self.client.session.is_some() {
                    self.listen().await;
                }
                Ok(())
            }
        }
    }

    pub(super) async fn receive(&mut self) -> Result<Option<Value>, Trouble> {
        self.arrived.recv().await.transpose()
    }

    pub(super) fn hang_up(&mut self, id: i64) -> bool {
        if let Some(running) = self.running.remove(&id) {
            running.abort();
        }
        // In a session a broken connection cancels nothing.
        self.client.session.is_none()
    }

    pub(super) async fn close(self) {
        if self.client.session.is_some() {
            self.client.delete().await;
        }
    }

    /// The handshake, whose response names the session.
    async fn initialize(&mut self, message: &Value) -> Result<(), Trouble> {
        let response = respond(self.client.clone(), message.clone()).await;
        if response.status() != StatusCode::OK {
            return Err(refusal(response).await);
        }
        self.client.session = response.header("mcp-session-id").map(str::to_owned);
        let answer = response.json().await;
        let negotiated = answer["result"]["protocolVersion"].as_str();
        self.client.version = negotiated.map(str::to_owned);
        self.sender.send(Ok(answer)).ok();
        Ok(())
    }

    /// Opens the stream of the session, and passes on what comes on it.
    async fn listen(&mut self) {
        let response = self.client.get(None).await;
        if !response.is_stream() {
            return;
        }
        let (mut events, sender) = (response.events(), self.sender.clone());
        self.tasks.spawn(async move {
            while let Some(message) = events.read_message().await {
                if sender.send(Ok(message)).is_err() {
                    return;
                }
            }
        });
    }

    /// Posts a request, and lets its response come as it likes.
    async fn ask(&mut self, message: &Value, id: Option<i64>) {
        let client = self.client.clone();
        let mut exchange = Box::pin(exchange(client, message.clone(), self.sender.clone()));
        // What is sent first arrives first: the server has begun before the next message follows.
        let begun = poll_fn(|cx| Poll::Ready(exchange.as_mut().poll(cx))).await;
        if begun.is_pending() {
            let running = self.tasks.spawn(exchange);
            self.running.extend(id.map(|id| (id, running)));
        }
    }
}

async fn respond(client: HttpClient, message: Value) -> HttpResponse {
    let request = client.posting(&message);
    let response = client.call(request, message.to_string().into()).await;
    HttpResponse::new(response, client.patience)
}

/// Posts a request and passes on what comes back, until it is answered.
async fn exchange(client: HttpClient, message: Value, sender: UnboundedSender<Arrival>) {
    let id = message["id"].clone();
    let mut response = respond(client.clone(), message).await;
    while response.is_stream() {
        let mut events = response.events();
        while let Some(message) = events.read_message().await {
            let answered = message.get("method").is_none() && message["id"] == id;
            if sender.send(Ok(message)).is_err() || answered {
                return;
            }
        }
        if events.last_event_id().is_empty() {
            let trouble = format!("the stream of request {id} ended before its answer");
            sender.send(Err(trouble)).ok();
            return;
        }
        // It says where to go on.
        response = client.get(Some(events.last_event_id())).await;
    }
    let is_json = response.header("content-type") == Some("application/json");
    let arrival = match is_json {
        true => Ok(response.json().await),
        false => Err(refusal(response).await),
    };
    sender.send(arrival).ok();
}

async fn refusal(response: HttpResponse) -> Trouble {
    let status = response.status();
    let body = response.bytes().await;
    format!("HTTP {status}: {}", String::from_utf8_lossy(&body))
}
