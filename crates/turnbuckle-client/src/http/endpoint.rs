//! Streamable HTTP: one URL, and a POST for every message.
//!
//! Serves both eras. In the newer one there is nothing but the POST: its response brings the answer, and closing it
//! cancels. In the older one the server may hold a session, has a stream of its own ([`stream`]), and takes up again
//! what broke off ([`posted`]).

mod cancel;
mod closing;
mod posted;
mod session;
mod stream;

use std::{mem::take, sync::Arc, time::Duration};

use ::http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use bytes::Bytes;
use tokio::sync::oneshot;
use turnbuckle_protocol::method;

use self::{cancel::CancelOnDrop, closing::Closing, posted::Posted, session::Session};
use super::{
    answering::refused,
    headers::{Headers, RequestHeaders},
    taken,
    url::Url,
    wire::{HttpError, Login, Response, Wire},
};
use crate::{
    answer::Answer,
    error::TransportError,
    held::Held,
    hub::Hub,
    lifecycle::Rules,
    message::{self, HeaderList},
    pending_sends::PendingSends,
    traffic::Direction,
    transport::Outgoing,
};

const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// How long the first call waits for the server's own stream.
const OPENING: Duration = Duration::from_millis(500);

/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// An endpoint of Streamable HTTP.
#[derive(Debug)]
pub(crate) struct Endpoint {
    shared: Arc<Shared>,
}

/// What requests, the server's stream and late cancellations share.
#[derive(Debug)]
struct Shared {
    wire: Wire,
    url: Url,
    /// The headers of whatever is posted.
    posting: Headers,
    session: Session,
    closing: Closing,
    /// The cancellations that are on their way.
    cancellations: PendingSends,
}

impl Endpoint {
    pub(super) fn new(wire: Wire, url: Url) -> Self {
        let posting = [(ACCEPT, EITHER), (CONTENT_TYPE, JSON)];
        let shared = Shared {
            posting: wire.headers().prepared(posting, &[]),
            wire,
            url,
            session: Session::default(),
            closing: Closing::default(),
            cancellations: PendingSends::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Posts a request and waits for its answer.
    pub(crate) async fn request(
        &self,
        outgoing: &mut Outgoing,
        hub: &Arc<Hub>,
    ) -> Result<Answer, TransportError> {
        let closed = self.shared.closing.closed();
        self.shared.closing.check()?;
        tokio::select! {
            biased;
            answer = self.exchange(outgoing, hub) => answer,
            () = closed => Err(TransportError::ClosedByUs),
        }
    }

    async fn exchange(
        &self,
        outgoing: &mut Outgoing,
        hub: &Arc<Hub>,
    ) -> Result<Answer, TransportError> {
        let shared = &self.shared;
        let begins = outgoing.method == method::INITIALIZE.name;
        if begins {
            shared.session.forget();
        }
        let (session, prepared) = shared.session.going_along(&outgoing.rules, begins)?;
        if prepared.is_none() {
            let headers = &mut outgoing.headers;
            headers.extend(message::version(&outgoing.rules));
            headers.extend(session.clone().map(|id| (MCP_SESSION_ID, id)));
        }
        hub.tap(Direction::Sent, &outgoing.body);
        let body = Bytes::from(take(&mut outgoing.body));
        let cancel = CancelOnDrop::new(shared, hub, outgoing, session.as_ref());
        let posted = Posted::new(shared, hub, outgoing, session.as_ref(), prepared);
        let answer = async {
            let (headers, login) = (posted.headers(), posted.login());
            let response = shared
                .wire
                .send(&Method::POST, &shared.url, headers, &body, login)
                .await?;
            if begins && response.status().is_success() {
                shared.session.begin(response.headers())?;
            }
            posted.answer(response).await
        };
        let answer = answer.await;
        cancel.not_needed();
        answer
    }

    /// Posts a message that nobody answers.
    pub(crate) async fn send(
        &self,
        message: Vec<u8>,
        headers: HeaderList,
        hub: &Arc<Hub>,
    ) -> Result<(), TransportError> {
        self.shared.closing.check()?;
        hub.tap(Direction::Sent, &message);
        let held = Held::default();
        let login = Login::Allowed(Some(&held));
        let session = self.shared.session.id();
        let sending = self.shared.tell(message, headers, session, login);
        taken(Some(&held), sending).await
    }

    /// Returns what takes down how long somebody gets credentials for a request, if anybody does.
    pub(crate) fn held(&self) -> Option<Arc<Held>> {
        self.shared.wire.held()
    }

    /// Opens the server's own stream, where the revision has one.
    ///
    /// Many servers ask on that stream and lose what they ask while nobody reads it, so the first call waits for it. Not
    /// for long: some servers say nothing at all before they have something to tell.
    pub(crate) async fn agreed(&self, rules: &Arc<Rules>, hub: &Arc<Hub>) {
        let session = &self.shared.session;
        if !rules.session {
            session.forget();
            return session.prepare(rules, &self.shared.posting);
        }
        // Nobody would end the stream of a client that is closed.
        if self.shared.closing.is_closed() {
            return;
        }
        let (opened, is_open) = oneshot::channel();
        let (shared, rules) = (&self.shared, Arc::clone(rules));
        let listening = stream::listen(Arc::clone(shared), rules.clone(), Arc::clone(hub), opened);
        let task = tokio::spawn(listening).abort_handle();
        session.prepare(&rules, &shared.posting);
        session.agreed(task);
        let _ = tokio::time::timeout(OPENING, is_open).await;
    }

    /// Ends every call that waits, and the session. Cancellations are sent first.
    pub(crate) async fn close(&self, hub: &Hub) {
        self.shared.closing.close();
        hub.end(TransportError::ClosedByUs);
        let goodbye = self.goodbye();
        self.shared.cancellations.wait(GOODBYE).await;
        if let Some(goodbye) = goodbye {
            goodbye.await;
        }
    }

    /// Tells the server that the session is over, if there is one. From here on it is over for us.
    fn goodbye(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let headers = self.shared.session.end()?;
        let shared = Arc::clone(&self.shared);
        Some(async move {
            let (method, body) = (Method::DELETE, Bytes::new());
            let deleted = shared.wire.send(
                &method,
                &shared.url,
                headers[..].into(),
                &body,
                Login::Never,
            );
            // Whatever it says, also that it does not let clients end sessions: there is nothing more to do.
            let _ = tokio::time::timeout(GOODBYE, deleted).await;
        })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let (Some(goodbye), Ok(runtime)) =
            (self.goodbye(), tokio::runtime::Handle::try_current())
        {
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move {
                shared.cancellations.wait(GOODBYE).await;
                goodbye.await;
            });
        }
    }
}

impl Shared {
    /// Opens a stream, or takes one up again after an event.
    async fn get(
        &self,
        rules: &Rules,
        session: Option<&HeaderValue>,
        after: Option<&HeaderValue>,
        login: Login<'_>,
    ) -> Result<Response, HttpError> {
        let mut headers = vec![(ACCEPT, EVENTS)];
        let optional = [
            (MCP_PROTOCOL_VERSION, rules.version_header.as_ref()),
            (MCP_SESSION_ID, session),
            (LAST_EVENT_ID, after),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                headers.push((name, value.clone()));
            }
        }
        self.wire
            .send(
                &Method::GET,
                &self.url,
                headers[..].into(),
                &Bytes::new(),
                login,
            )
            .await
    }

    /// Posts a message and expects no more than that it was taken.
    async fn tell(
        &self,
        message: Vec<u8>,
        mut headers: HeaderList,
        session: Option<HeaderValue>,
        login: Login<'_>,
    ) -> Result<(), TransportError> {
        let in_session = session.is_some();
        headers.extend(session.map(|id| (MCP_SESSION_ID, id)));
        let headers = RequestHeaders {
            prepared: Some(&self.posting),
            own: &headers,
        };
        let response = self
            .wire
            .send(&Method::POST, &self.url, headers, &message.into(), login)
            .await?;
        match response.status() {
            status if status.is_success() => {
                // Usually empty; reading it frees the connection.
                response.skip().await;
                Ok(())
            }
            StatusCode::NOT_FOUND if in_session => Err(TransportError::SessionEnded),
            _ => Err(refused(response.refusal().await)),
        }
    }
}
