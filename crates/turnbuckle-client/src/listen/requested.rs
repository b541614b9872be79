//! Listening by a request that is held open, as 2026-07-28 does.

use std::sync::atomic::Ordering;
use std::time::Duration;

use turnbuckle_protocol::RequestId;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{ListenParams, SubscriptionFilter};

use super::subscriptions::{Inbox, Told};
use super::{Ears, Heard};
use crate::answer::Answer;
use crate::call::Options;
use crate::client::Client;
use crate::error::{CallError, TransportError};
use crate::held::expired;
use crate::message::{self, Extra};
use crate::transport::Outgoing;

const LISTEN: &str = method::SUBSCRIPTIONS_LISTEN.name;

/// The pause before listening again, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// Listens until the server ends it, or the connection cannot be had again.
pub(super) async fn listen(
    client: Client,
    filter: SubscriptionFilter,
    options: Options,
    mut ears: Ears,
) {
    let mut pause = PAUSE.0;
    loop {
        let outcome = once(&client, &filter, &options, &mut ears).await;
        match outcome {
            Outcome::Ended => return ears.hear(Heard::Ended).await,
            Outcome::Failed(error) => return ears.fail(error).await,
            Outcome::Lost { acknowledged } => {
                if acknowledged {
                    pause = PAUSE.0;
                    ears.hear(Heard::Interrupted).await;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// How one listen request came to its end.
enum Outcome {
    /// The server ended it.
    Ended,
    /// It makes no sense to try again.
    Failed(CallError),
    /// The connection was lost.
    Lost { acknowledged: bool },
}

async fn once(
    client: &Client,
    filter: &SubscriptionFilter,
    options: &Options,
    ears: &mut Ears,
) -> Outcome {
    let inner = &client.inner;
    let id = inner.ids.next();
    let mut outgoing = match request(client, &id, filter, options) {
        Ok(outgoing) => outgoing,
        Err(error) => return Outcome::Failed(error),
    };
    let mut inbox = Registered {
        client,
        inbox: inner.hub.subscriptions.open(id.clone()),
        id,
    };
    let mut answer = std::pin::pin!(inner.transport.request(&mut outgoing, &inner.hub));
    let first = expired(options.patience.silence, options.held.as_deref());
    let mut first = std::pin::pin!(first);
    let mut acknowledged = false;
    loop {
        if inbox.missed() {
            ears.hear(Heard::Interrupted).await;
        }
        tokio::select! {
            // In this order: what was told before the end is heard before it.
            biased;
            told = inbox.inbox.told.recv() => match told {
                Some(Told::Acknowledged(filter)) => {
                    acknowledged = true;
                    ears.listening(filter).await;
                }
                Some(Told::Change(change)) => ears.hear(Heard::Change(change)).await,
                Some(Told::End) | None => return Outcome::Ended,
            },
            answer = &mut answer => {
                // Whoever never got through learns why; and where all share a connection, it may be gone for good.
                let gone = ears.ready.is_some() || !inner.transport.comes_back();
                return ended(answer, acknowledged, gone);
            }
            () = &mut first, if !acknowledged => {
                let limit = options.patience.silence;
                return Outcome::Failed(CallError::TimedOut { method: LISTEN, limit });
            }
        }
    }
}

fn ended(answer: Result<Answer, TransportError>, acknowledged: bool, gone: bool) -> Outcome {
    match answer {
        Ok(answer) => match answer.outcome {
            Ok(_) => Outcome::Ended,
            Err(error) => Outcome::Failed(CallError::refused(LISTEN, error, answer.http)),
        },
        Err(TransportError::ClosedByUs) => Outcome::Ended,
        Err(source) if gone || is_forbidden(&source) => {
            Outcome::Failed(CallError::disconnected(LISTEN, source))
        }
        Err(_) => Outcome::Lost { acknowledged },
    }
}

/// Says whether the server no longer lets us in: asking again and again would change nothing.
fn is_forbidden(error: &TransportError) -> bool {
    match error {
        TransportError::Refused(refusal) => matches!(refusal.status.as_u16(), 401 | 403),
        TransportError::Authorization(_) => true,
        _ => false,
    }
}

fn request(
    client: &Client,
    id: &RequestId,
    filter: &SubscriptionFilter,
    options: &Options,
) -> Result<Outgoing, CallError> {
    let rules = client.inner.rules();
    let params = ListenParams::new(filter.clone());
    let extra = Extra {
        meta: Some(&options.meta),
        ..Extra::default()
    };
    let body = message::request(id, LISTEN, &params, &rules, &extra);
    Ok(Outgoing {
        id: id.clone(),
        method: LISTEN,
        body: body.map_err(|error| CallError::Unsendable {
            method: LISTEN,
            reason: error.to_string(),
        })?,
        headers: message::headers(&rules, LISTEN, None),
        rules,
        held: options.held.clone(),
    })
}

/// Takes the request out of the table when nobody listens any more.
struct Registered<'c> {
    client: &'c Client,
    inbox: Inbox,
    id: RequestId,
}

impl Registered<'_> {
    fn missed(&self) -> bool {
        self.inbox.missed.swap(false, Ordering::AcqRel)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.client.inner.hub.subscriptions.close(&self.id);
    }
}
