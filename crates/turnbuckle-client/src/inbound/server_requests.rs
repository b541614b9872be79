//! Requests from the server, in the revisions that allow them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::{task::AbortHandle, time::Instant};
use turnbuckle_protocol::{
    RequestId, RpcError,
    jsonrpc::{write_error, write_result},
    method,
};

use crate::{
    client::ClientInner,
    inbound::{InboundRouter, message::RawJson, observers::Anomaly},
    relay::RelayCallId,
    sync::lock,
};

const PING: &str = method::PING.name;

/// The server requests that are being handled.
#[derive(Debug, Default)]
pub(super) struct ServerRequests {
    open: Mutex<HashMap<RequestId, AbortHandle>>,
    /// The time of the last response.
    last_response: Mutex<Option<Instant>>,
}

impl ServerRequests {
    /// Stops handling a request that the server cancelled.
    pub(super) fn abort(&self, id: &RequestId) {
        let task = lock(&self.open).remove(id);
        if let Some(task) = task {
            *self.last_response() = Some(Instant::now());
            task.abort();
        }
    }

    /// Stops handling all requests.
    fn abort_all(&self) {
        for (_, task) in lock(&self.open).drain() {
            task.abort();
        }
    }

    /// Returns the time until which a request was open.
    fn last_open(&self) -> Option<Instant> {
        if lock(&self.open).is_empty() {
            *self.last_response()
        } else {
            Some(Instant::now())
        }
    }

    fn last_response(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.last_response)
    }
}

impl InboundRouter {
    /// Returns the time until which the server waited for the client: now, if it still waits.
    pub(crate) fn last_server_wait(&self) -> Option<Instant> {
        self.server_requests.last_open()
    }

    /// Handles a server request in a separate task.
    pub(super) fn on_request(
        self: &Arc<Self>,
        id: RequestId,
        method: String,
        params: RawJson,
        call: Option<RelayCallId>,
    ) {
        let Some(client) = self.client() else {
            return;
        };
        // A server of 2026-07-28 must not send requests, and must not get a response to one.
        if !client.rules().server_requests_allowed {
            return self.report_anomaly(Anomaly::DisallowedRequest { method });
        }
        // Held until the response is sent, so that a server that does not read responses is limited.
        let permit = Arc::clone(&self.response_permits).try_acquire_owned().ok();
        // Outside of the lock and of the task, so that a relay receives all messages in order of arrival.
        let relay = self
            .relay
            .as_ref()
            .filter(|_| permit.is_some() && method != PING);
        let relayed = relay.map(|relay| relay.on_request(&method, params.as_str(), call));
        let mut open = lock(&self.server_requests.open);
        let Some(permit) = permit.filter(|_| !open.contains_key(&id)) else {
            drop(open);
            self.report_anomaly(Anomaly::DisallowedRequest { method });
            let error =
                RpcError::internal("too many concurrent requests, or a duplicate request id");
            return self.send_error(Some(id), error);
        };
        let router = Arc::clone(self);
        let request_id = id.clone();
        let task = tokio::spawn(self.until_client_dropped(async move {
            let outcome = match relayed {
                Some(relayed) => relayed.await,
                None => handle_request(&client, &method, params.as_str()).await,
            };
            // Set before the request is removed, so that one of both is always visible. A ping does not count.
            if method != PING {
                *router.server_requests.last_response() = Some(Instant::now());
            }
            lock(&router.server_requests.open).remove(&request_id);
            client.send_response(&request_id, outcome).await;
            drop(permit);
        }));
        open.insert(id, task.abort_handle());
    }

    /// Sends an error response, if the request has an id.
    ///
    /// Input that is not JSON lacks an id and gets no response: the server may print to its own stream.
    pub(super) fn send_error(&self, id: Option<RequestId>, error: RpcError) {
        let client = self
            .client()
            .filter(|client| client.rules().server_requests_allowed);
        let permit = Arc::clone(&self.error_permits).try_acquire_owned();
        if let (Some(client), Some(id), Ok(permit)) = (client, id, permit) {
            tokio::spawn(self.until_client_dropped(async move {
                client.send_response(&id, Err(error)).await;
                drop(permit);
            }));
        }
    }

    /// Stops handling all server requests, because their session has ended.
    pub(crate) fn abort_server_requests(&self) {
        self.server_requests.abort_all();
    }

    /// Runs a future that holds the client, until the last clone of the client is dropped. An open form, or a server
    /// that does not read responses, must not keep the connection open.
    pub(crate) fn until_client_dropped<F>(&self, work: F) -> impl Future<Output = ()> + use<F>
    where
        F: Future<Output = ()>,
    {
        let mut client_dropped = self.client_dropped.subscribe();
        async move {
            tokio::select! {
                biased;
                _ = client_dropped.wait_for(|dropped| *dropped) => {}
                () = work => {}
            }
        }
    }
}

/// Handles a server request; returns the result as JSON text, or an error.
async fn handle_request(
    client: &Arc<ClientInner>,
    method: &str,
    params: &str,
) -> Result<Vec<u8>, RpcError> {
    if method == PING {
        return Ok(b"{}".to_vec());
    }
    let revision = client.rules().revision;
    let callbacks = &client.settings.callbacks;
    let result = callbacks.handle(method, params, revision).await?;
    Ok(result.to_string().into_bytes())
}

impl ClientInner {
    /// Sends the response to a server request; failures are logged, because the connection is closed.
    async fn send_response(&self, id: &RequestId, outcome: Result<Vec<u8>, RpcError>) {
        let mut message = Vec::new();
        match outcome {
            Ok(result) => write_result(&mut message, id, &result),
            Err(error) => write_error(&mut message, Some(id), &error),
        }
        if let Err(error) = self.send(message).await {
            tracing::debug!(%id, %error, "a response was not delivered to the server");
        }
    }
}
