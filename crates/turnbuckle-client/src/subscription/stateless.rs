//! Subscriptions with a listen request that is held open (2026-07-28).

use std::{mem::take, sync::atomic::Ordering, time::Duration};

use turnbuckle_protocol::{
    RequestId, method,
    types::{ListenParams, SubscriptionFilter},
};

use crate::{
    call::CallOptions,
    client::{Client, timeout::limit_elapsed},
    error::{CallError, TransportError},
    inbound::message::RawResponse,
    subscription::{EventSender, SubscriptionEvent, SubscriptionMessage, SubscriptionReceiver},
    transport::{OutgoingRequest, encode},
};

const LISTEN: &str = method::SUBSCRIPTIONS_LISTEN.name;

/// The first and the maximum delay before another listen request.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Runs a subscription until the server ends it, or the connection cannot be restored.
pub(super) async fn listen(
    client: Client,
    filter: SubscriptionFilter,
    options: CallOptions,
    mut events: EventSender,
) {
    let mut pause = RETRY_DELAY.0;
    loop {
        let outcome = listen_once(&client, &filter, &options, &mut events).await;
        match outcome {
            ListenOutcome::Ended => return events.send(SubscriptionEvent::Ended).await,
            ListenOutcome::Failed(error) => return events.fail(error).await,
            ListenOutcome::Lost { acknowledged } => {
                if acknowledged {
                    pause = RETRY_DELAY.0;
                    events.send(SubscriptionEvent::Interrupted).await;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY_DELAY.1);
    }
}

/// The outcome of one listen request.
enum ListenOutcome {
    /// The server ended it.
    Ended,
    /// Another attempt would not succeed.
    Failed(CallError),
    /// The connection was lost.
    Lost { acknowledged: bool },
}

async fn listen_once(
    client: &Client,
    filter: &SubscriptionFilter,
    options: &CallOptions,
    events: &mut EventSender,
) -> ListenOutcome {
    let inner = &client.inner;
    let mut request = match encode(client, filter, options) {
        Ok(request) => request,
        Err(error) => return ListenOutcome::Failed(error),
    };
    let (id, body) = (request.id.clone(), take(&mut request.body));
    let mut receiver = ListenRegistration {
        client,
        receiver: inner.router.subscriptions.open(id.clone()),
        id,
    };
    // A server may still respond to a cancelled listen request.
    let mark_cancelled = inner
        .router
        .cancelled_requests
        .mark_on_drop(request.id.clone());
    let mut response = std::pin::pin!(inner.transport.send_request(&request, body, &inner.router));
    let first_deadline = limit_elapsed(options.timeouts.idle, options.auth_wait.as_deref());
    let mut first_deadline = std::pin::pin!(first_deadline);
    let mut acknowledged = false;
    loop {
        if receiver.missed() {
            events.send(SubscriptionEvent::Interrupted).await;
        }
        tokio::select! {
            // In this order: messages that arrived before the end are delivered before it.
            biased;
            message = receiver.receiver.messages.recv() => match message {
                Some(SubscriptionMessage::Acknowledged(filter)) => {
                    acknowledged = true;
                    events.acknowledge(filter).await;
                }
                Some(SubscriptionMessage::Change(change)) => events.send(SubscriptionEvent::Change(change)).await,
                Some(SubscriptionMessage::End) | None => return ListenOutcome::Ended,
            },
            response = &mut response => {
                // A subscription that never became active reports the error; and a shared connection may be gone.
                let is_final = events.ready.is_some() || !inner.transport.can_reconnect();
                mark_cancelled.disarm();
                return listen_outcome(response, acknowledged, is_final);
            }
            () = &mut first_deadline, if !acknowledged => {
                let limit = options.timeouts.idle;
                return ListenOutcome::Failed(CallError::TimedOut { method: LISTEN, limit });
            }
        }
    }
}

fn listen_outcome(
    response: Result<RawResponse, TransportError>,
    acknowledged: bool,
    is_final: bool,
) -> ListenOutcome {
    match response {
        Ok(response) => match response.outcome {
            Ok(_) => ListenOutcome::Ended,
            Err(error) => ListenOutcome::Failed(CallError::rejected(LISTEN, error, response.http)),
        },
        Err(TransportError::ClientClosed) => ListenOutcome::Ended,
        Err(source) if is_final || is_forbidden(&source) => {
            ListenOutcome::Failed(CallError::disconnected(LISTEN, source))
        }
        Err(_) => ListenOutcome::Lost { acknowledged },
    }
}

/// Returns whether the server rejects the authorization: another attempt would not succeed.
fn is_forbidden(error: &TransportError) -> bool {
    match error {
        TransportError::ErrorResponse(error_response) => {
            matches!(error_response.status.as_u16(), 401 | 403)
        }
        TransportError::Authorization(_) => true,
        _ => false,
    }
}

fn encode(
    client: &Client,
    filter: &SubscriptionFilter,
    options: &CallOptions,
) -> Result<OutgoingRequest<'static>, CallError> {
    let mut request = client.new_request(&method::SUBSCRIPTIONS_LISTEN, options);
    request.id = client.inner.ids.next();
    let params = ListenParams::new(filter.clone());
    let encoded = encode::fill(&mut request, &params, None, Some(&options.meta));
    encoded.map_err(|error| CallError::Unsendable {
        method: LISTEN,
        reason: error.to_string(),
    })?;
    Ok(request)
}

/// Unregisters the listen request when it is dropped.
struct ListenRegistration<'c> {
    client: &'c Client,
    receiver: SubscriptionReceiver,
    id: RequestId,
}

impl ListenRegistration<'_> {
    fn missed(&self) -> bool {
        self.receiver.missed.swap(false, Ordering::AcqRel)
    }
}

impl Drop for ListenRegistration<'_> {
    fn drop(&mut self) {
        self.client.inner.router.subscriptions.close(&self.id);
    }
}
