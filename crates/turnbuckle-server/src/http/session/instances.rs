//! Messages about sessions between the instances that share a store.
//!
//! A client sends its messages to any instance. A response or progress goes to the instance that sent the client request, a
//! cancellation to the one that runs the call, and the end of a session to all.

use std::sync::{Arc, atomic::Ordering};

use ::http::Response as HttpResponse;
use bytes::Bytes;
use serde_json::json;
use tokio::runtime::Handle;
use turnbuckle_protocol::{
    RequestId,
    jsonrpc::{self, Incoming, MalformedMessage, Message, Notification, Response},
    types::ProgressParams,
};
use turnbuckle_store::{
    ControlMessage, InstanceMessage, InstanceSlot, SessionId, SessionUpdate, StoreError,
};

use super::{ActiveSessionGuard, active::store_unavailable};
use crate::{
    http::{body::ResponseBody, endpoint::Endpoint, stream::forwarding},
    lifecycle::{runtime::SessionRuntime, session::NotificationEffect},
    server::instance::in_time,
};

/// Maximum length of the id of a call that is cancelled at another instance, in bytes.
const MAX_ID_BYTES: usize = 1_024;

/// Completes the client request that a response belongs to, here or at the instance that sent it.
pub(crate) async fn complete_client_request(
    active: &ActiveSessionGuard,
    response: Response<'_>,
) -> Result<(), HttpResponse<ResponseBody>> {
    let runtime = &active.session.runtime;
    let Some(slot) = runtime.sender_elsewhere(&response.id) else {
        runtime.complete(response);
        return Ok(());
    };
    let mut message = Vec::new();
    match &response.outcome {
        Ok(result) => jsonrpc::write_result(&mut message, &response.id, result.as_bytes()),
        Err(error) => jsonrpc::write_error(&mut message, Some(&response.id), error),
    }
    send_to(active, slot, message).await
}

/// Fails the client request that a malformed response belongs to, here or at the instance that sent it.
pub(crate) async fn fail_client_request(
    active: &ActiveSessionGuard,
    malformed: MalformedMessage,
) -> Result<(), HttpResponse<ResponseBody>> {
    let runtime = &active.session.runtime;
    let Some(id) = &malformed.id else {
        return Ok(());
    };
    let Some(slot) = runtime.sender_elsewhere(id) else {
        runtime.fail(id, malformed.error);
        return Ok(());
    };
    let mut message = Vec::new();
    jsonrpc::write_error(&mut message, Some(id), &malformed.error);
    send_to(active, slot, message).await
}

/// Does what is left for a notification. Returns the update of the session, if there is one to store.
pub(crate) async fn apply_elsewhere(
    active: &ActiveSessionGuard,
    effect: NotificationEffect,
) -> Result<Option<SessionUpdate>, HttpResponse<ResponseBody>> {
    match effect {
        NotificationEffect::Update(update) => return Ok(Some(update)),
        NotificationEffect::CancelElsewhere(request) => {
            if let Some(instance) = active.endpoint.server.instance()
                && request.raw().len() <= MAX_ID_BYTES
            {
                let session = active.session_id;
                let message = ControlMessage::CallCancelled { session, request };
                let published = Box::pin(instance.publish(message)).await;
                published.map_err(|error| unavailable(active, &error))?;
            }
        }
        NotificationEffect::ProgressElsewhere(token) => {
            if let Some(slot) = active.session.runtime.sender_elsewhere(&token) {
                let mut message = Vec::new();
                let params = json!({ "progressToken": token, "progress": 0 });
                if jsonrpc::write_notification(&mut message, PROGRESS, &params).is_ok() {
                    send_to(active, slot, message).await?;
                }
            }
        }
    }
    Ok(None)
}

const PROGRESS: &str = "notifications/progress";

/// Sends a message of the client to the instance that waits for it. Resolves once the message is stored.
async fn send_to(
    active: &ActiveSessionGuard,
    slot: InstanceSlot,
    message: Vec<u8>,
) -> Result<(), HttpResponse<ResponseBody>> {
    let instances = &active.endpoint.server.store_ref().instances;
    let message = InstanceMessage::ClientMessage {
        session: active.session_id,
        message: message.into(),
    };
    match in_time(instances.send(slot, message)).await {
        Ok(true) => {}
        Ok(false) => tracing::debug!(
            slot = slot.number(),
            "dropped a response to a client request of an instance that has stopped"
        ),
        Err(error) => return Err(unavailable(active, &error)),
    }
    Ok(())
}

fn unavailable(active: &ActiveSessionGuard, error: &StoreError) -> HttpResponse<ResponseBody> {
    store_unavailable(&active.endpoint, None, error)
}

impl Endpoint {
    /// Gives up the lease of the server, and of those on paths below, unless another endpoint serves it.
    pub(crate) async fn leave_instances(self: &Arc<Self>) {
        for endpoint in std::iter::once(self.clone()).chain(self.endpoints_below()) {
            if let Some(instance) = endpoint.server.instance()
                && endpoint.server.session_users().all().len() <= 1
            {
                instance.leave().await;
            }
        }
    }

    /// Handles a message of another instance.
    pub(super) fn receive_from_instance(self: &Arc<Self>, message: InstanceMessage) {
        match message {
            InstanceMessage::ClientMessage { session, message } => {
                if let Some(active) = self.active_sessions.find(&session) {
                    receive_client_message(&active.runtime, &message);
                }
            }
            message => forwarding::receive(self, message),
        }
    }

    /// Cancels a call of a session, if it runs here.
    pub(super) fn cancel_call(&self, session: &SessionId, request: &RequestId) {
        if let Some(active) = self.active_sessions.find(session) {
            active.runtime.cancel(request);
        }
    }

    /// Closes active sessions that no longer exist. A check that runs is repeated afterwards.
    pub(super) fn check_active_sessions(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if self.session_checks.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        let endpoint = self.clone();
        runtime.spawn(async move {
            loop {
                let requested = endpoint.session_checks.load(Ordering::SeqCst);
                endpoint.close_ended_sessions().await;
                let all_done = endpoint.session_checks.compare_exchange(
                    requested,
                    0,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                );
                if all_done.is_ok() {
                    return;
                }
            }
        });
    }

    async fn close_ended_sessions(&self) {
        let sessions = &self.server.store_ref().sessions;
        for session in self.active_sessions.ids() {
            if matches!(sessions.load(&session).await, Ok(None)) {
                self.active_sessions.close(&session);
                self.end_session_here(session);
            }
        }
    }
}

/// Handles a response or progress that another instance has received.
fn receive_client_message(runtime: &SessionRuntime, message: &Bytes) {
    match jsonrpc::parse(message) {
        Ok(Incoming::One(Message::Response(response))) => runtime.complete(response),
        Ok(Incoming::One(Message::Notification(Notification { method, params })))
            if method == PROGRESS =>
        {
            if let Ok(params) = params.parse::<ProgressParams>() {
                runtime.progressed(&params.progress_token);
            }
        }
        _ => tracing::debug!("received an unexpected message of a client from another instance"),
    }
}
