//! HTTP+SSE of 2024-11-05: a stream on which everything comes, and a URL to post everything to.

mod line;

use std::{
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use bytes::Bytes;
use turnbuckle_protocol::{RequestId, jsonrpc::write_notification, method, types::CancelledParams};

use self::line::Line;
use super::{
    answering::{self, refused},
    taken,
    url::Url,
    wire::{Login, Response, Wire},
};
use crate::{
    answer::Answer,
    error::TransportError,
    held::Held,
    hub::Hub,
    message::{self, HeaderList},
    pending_sends::PendingSends,
    traffic::Direction,
    transport::Outgoing,
};

/// How long cancellations may take to be sent before the stream is closed.
const CANCELLING: Duration = Duration::from_secs(2);

/// A server of HTTP+SSE.
///
/// A session is a stream: both begin with `initialize`, and both end together.
#[derive(Debug)]
pub(crate) struct HttpSse {
    wire: Arc<Wire>,
    url: Url,
    line: Mutex<State>,
    /// The cancellations that are on their way.
    cancellations: PendingSends,
}

#[derive(Debug)]
enum State {
    NotYet,
    Open(Arc<Line>),
    Closed,
}

impl HttpSse {
    pub(super) fn new(wire: Wire, url: Url) -> Self {
        Self {
            wire: Arc::new(wire),
            url,
            line: Mutex::new(State::NotYet),
            cancellations: PendingSends::default(),
        }
    }

    /// Posts a request and waits for its answer on the stream.
    pub(crate) async fn request(
        &self,
        outgoing: &mut Outgoing,
        hub: &Arc<Hub>,
    ) -> Result<Answer, TransportError> {
        let begins = outgoing.method == method::INITIALIZE.name;
        let line = match begins {
            true => self.open(hub, outgoing.held.as_deref()).await?,
            false => self.line()?,
        };
        let mut answer = line.waiting.open(outgoing.id.clone())?;
        let mut waits = Waits {
            server: self,
            line: &line,
            hub,
            id: Some(outgoing.id.clone()),
            begins,
            cancellable: outgoing.rules.cancellable(outgoing.method),
        };
        hub.tap(Direction::Sent, &outgoing.body);
        let login = Login::Allowed(outgoing.held.as_deref());
        let body = take(&mut outgoing.body).into();
        let mut headers = take(&mut outgoing.headers);
        headers.extend(message::version(&outgoing.rules));
        let post = post(&self.wire, &line, headers, body, login);
        let answer = tokio::select! {
            biased;
            // Some servers answer on the stream before they answer the POST.
            answer = &mut answer => answer.unwrap_or(Err(TransportError::Closed)),
            posted = post => match posted {
                Ok(response) if response.status().is_success() => {
                    response.skip().await;
                    answer.await.unwrap_or(Err(TransportError::Closed))
                }
                Ok(response) if response.status() == StatusCode::NOT_FOUND => {
                    Err(TransportError::SessionEnded)
                }
                Ok(response) => answering::answer(response.refusal().await, &outgoing.id, hub),
                Err(problem) => Err(problem.into()),
            },
        };
        waits.over();
        if begins && !matches!(&answer, Ok(answer) if answer.outcome.is_ok()) {
            self.forget(&line);
        }
        answer
    }

    /// Posts a message that nobody answers.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        headers: HeaderList,
        hub: &Arc<Hub>,
    ) -> Result<(), TransportError> {
        let line = self.line()?;
        hub.tap(Direction::Sent, &message);
        let held = Held::default();
        let login = Login::Allowed(Some(&held));
        taken(Some(&held), async {
            let response = post(&self.wire, &line, headers, message.into(), login).await?;
            match response.status() {
                status if status.is_success() => {
                    response.skip().await;
                    Ok(())
                }
                StatusCode::NOT_FOUND => Err(TransportError::SessionEnded),
                _ => Err(refused(response.refusal().await)),
            }
        })
        .await
    }

    /// Returns what takes down how long somebody gets credentials for a request, if anybody does.
    pub(crate) fn held(&self) -> Option<Arc<Held>> {
        self.wire.held()
    }

    /// Ends every call that waits, and the stream. Cancellations are sent first.
    pub(crate) async fn close(&self, hub: &Hub) {
        hub.end(TransportError::ClosedByUs);
        let before = std::mem::replace(&mut *self.lock(), State::Closed);
        if let State::Open(line) = before {
            line.waiting.end(TransportError::ClosedByUs);
            self.cancellations.wait(CANCELLING).await;
        }
    }

    /// Opens a new stream; the one before, if any, is let go.
    async fn open(&self, hub: &Arc<Hub>, held: Option<&Held>) -> Result<Arc<Line>, TransportError> {
        let login = Login::Allowed(held);
        let line = Arc::new(Line::open(&self.wire, &self.url, hub, login).await?);
        let mut state = self.lock();
        if matches!(*state, State::Closed) {
            return Err(TransportError::ClosedByUs);
        }
        *state = State::Open(Arc::clone(&line));
        Ok(line)
    }

    /// Lets a stream go on which no session was begun: nothing that is posted there would be answered.
    fn forget(&self, line: &Arc<Line>) {
        let mut state = self.lock();
        if matches!(&*state, State::Open(open) if Arc::ptr_eq(open, line)) {
            *state = State::NotYet;
        }
    }

    /// Returns the stream; one that has ended takes its session along.
    fn line(&self) -> Result<Arc<Line>, TransportError> {
        match &*self.lock() {
            State::Closed => Err(TransportError::ClosedByUs),
            State::Open(line) if line.waiting.ended().is_none() => Ok(Arc::clone(line)),
            State::Open(_) | State::NotYet => Err(TransportError::SessionEnded),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn post(
    wire: &Wire,
    line: &Line,
    mut headers: HeaderList,
    body: Bytes,
    login: Login<'_>,
) -> Result<Response, super::HttpError> {
    headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
    wire.send(&Method::POST, &line.post, headers[..].into(), &body, login)
        .await
}

/// A request that waits; if it is dropped, the server is told.
struct Waits<'s> {
    server: &'s HttpSse,
    line: &'s Arc<Line>,
    hub: &'s Arc<Hub>,
    id: Option<RequestId>,
    begins: bool,
    cancellable: bool,
}

impl Waits<'_> {
    /// Waits no longer, and need not say so.
    fn over(&mut self) {
        if let Some(id) = self.id.take() {
            self.line.waiting.give_up(&id);
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else {
            return;
        };
        if self.begins {
            self.server.forget(self.line);
        }
        if !self.line.waiting.give_up(&id) || !self.cancellable {
            return;
        }
        let mut message = Vec::new();
        let params = CancelledParams::new(id);
        let written = write_notification(&mut message, method::CANCELLED.name, &params);
        if written.is_err() {
            return;
        }
        self.hub.tap(Direction::Sent, &message);
        let (wire, line) = (Arc::clone(&self.server.wire), Arc::clone(self.line));
        self.server.cancellations.spawn(async move {
            let told = taken(None, async {
                let (headers, login) = (HeaderList::new(), Login::Never);
                post(&wire, &line, headers, message.into(), login).await?;
                Ok(())
            });
            if let Err(error) = told.await {
                tracing::debug!(%error, "a cancellation did not reach the server");
            }
        });
    }
}
