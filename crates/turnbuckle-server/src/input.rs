//! Requests to the client: elicitation, sampling, roots.
//!
//! A handler sends a client request and awaits the response. Where the revision has server-to-client requests, the
//! handler waits for the response. Otherwise a request without a response ends the call with `input_required`, and the
//! handler runs again from the start when the client retries with the response. [`journal`] keeps both runs consistent.

mod elicitation;
mod error;
mod journal;
mod once;
mod round_trips;
mod sampling;
mod sealing;
mod url_elicitation;

pub use elicitation::{Elicitation, ElicitationOutcome};
pub use error::ClientRequestError;
pub(crate) use error::missing_capability;
pub(crate) use once::store_owner;
pub(crate) use round_trips::{RequestIdentity, RoundTrips};
pub use sampling::SamplingBuilder;
pub use sealing::InvalidStateKeys;
pub(crate) use sealing::SealingKeys;
use turnbuckle_protocol::{
    revision::VersionedPayload,
    types::{
        ClientCapabilities, CreateMessageResult, ElicitParams, ElicitResult, EmptyParams,
        ListRootsResult, Root,
    },
};
pub(crate) use url_elicitation::elicitation_complete_notification;

use crate::{context::Context, lifecycle::ClientRequestMode, tasks};

impl Context {
    /// Asks the user for input, with a form or a URL.
    ///
    /// A handler that sends two requests for the same type sets a [key](Elicitation::key) for each. Put side effects
    /// before a request into [`once`](Self::once), because the handler may run again from the start to reach this
    /// point.
    ///
    /// ```
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// use turnbuckle_server::{Context, Elicitation, ToolError};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Signature {
    ///     /// Your full name.
    ///     name: String,
    /// }
    ///
    /// async fn sign(cx: Context) -> Result<String, ToolError> {
    ///     let request = Elicitation::form::<Signature>("Who should sign this?");
    ///     match cx.elicit(request).await?.accepted() {
    ///         Some(signature) => Ok(format!("signed by {}", signature.name)),
    ///         None => Ok("not signed".to_owned()),
    ///     }
    /// }
    /// ```
    pub async fn elicit<T>(
        &self,
        mut request: Elicitation<T>,
    ) -> Result<ElicitationOutcome<T>, ClientRequestError> {
        let key = &*request.take_key();
        let required = request.required_capability();
        self.require(
            request.is_supported_by(self.client_capabilities()),
            required,
        )?;
        let (mut params, read) = request.into_parts()?;
        if let ElicitParams::Url(elicitation) = &params {
            self.note_url_elicitation(elicitation);
        }
        let response: ElicitResult = self
            .client_request(key, "elicitation/create", &mut params)
            .await?;
        match read(response) {
            Ok(outcome) => Ok(outcome),
            Err(reason) => {
                self.invalid_response(key, "elicitation/create", reason)
                    .await
            }
        }
    }

    /// Requests a completion from the client's model.
    pub async fn sample(
        &self,
        key: &str,
        request: SamplingBuilder,
    ) -> Result<CreateMessageResult, ClientRequestError> {
        let required = request.required_capability();
        self.require(
            request.is_supported_by(self.client_capabilities()),
            required,
        )?;
        self.client_request(key, "sampling/createMessage", &mut request.into_params()?)
            .await
    }

    /// Requests the user's roots, such as workspace folders.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, ClientRequestError> {
        let required =
            ClientCapabilities::new().roots(turnbuckle_protocol::types::RootsCapability::default());
        self.require(self.client_capabilities().roots.is_some(), required)?;
        let result: ListRootsResult = self
            .client_request(key, "roots/list", &mut EmptyParams::default())
            .await?;
        Ok(result.roots)
    }

    /// Pings the client.
    ///
    /// Returns immediately in revisions without this request: the open call shows that the client is connected.
    pub async fn ping(&self) -> Result<(), ClientRequestError> {
        let call = &self.call;
        match &call.origin.runtime {
            // A client that has not sent `initialize` cannot be pinged.
            Some(runtime) if call.origin.client.info.is_some() => runtime
                .send_request(
                    &call.outbox,
                    "ping",
                    b"{}",
                    self.call.request_meta(),
                    call.server.client_request_timeouts(),
                )
                .await
                .map(drop),
            _ => Ok(()),
        }
    }

    fn require(
        &self,
        is_supported: bool,
        required: ClientCapabilities,
    ) -> Result<(), ClientRequestError> {
        if is_supported {
            Ok(())
        } else {
            Err(ClientRequestError::MissingCapability {
                required: Box::new(required),
            })
        }
    }

    async fn client_request<P, R>(
        &self,
        key: &str,
        method: &'static str,
        params: &mut P,
    ) -> Result<R, ClientRequestError>
    where
        P: VersionedPayload + serde::Serialize,
        R: VersionedPayload + serde::de::DeserializeOwned,
    {
        let call = &self.call;
        let rules = call.origin.rules;
        if !call.origin.accepts_client_requests {
            return Err(ClientRequestError::NotInitialized { method });
        }
        if !call.register_key(key) {
            return Err(ClientRequestError::DuplicateKey {
                key: key.to_owned(),
            });
        }
        let mut request = Vec::with_capacity(256);
        rules.write(params, &mut request);
        let response = match (
            rules.client_request_mode,
            &call.origin.runtime,
            &call.round_trips,
        ) {
            _ if call.task().is_some() => tasks::request_input(call, key, method, request).await?,
            (ClientRequestMode::Direct, Some(runtime), _) => {
                let timeouts = call.server.client_request_timeouts();
                runtime
                    .send_request(
                        &call.outbox,
                        method,
                        &request,
                        call.request_meta(),
                        timeouts,
                    )
                    .await?
            }
            (ClientRequestMode::RoundTrip, _, Some(round_trips)) => {
                match round_trips.request(key, method, request) {
                    Some(response) => response,
                    None => return self.suspend(method).await,
                }
            }
            _ => return Err(ClientRequestError::Unavailable { method }),
        };
        match rules.read(&response) {
            Ok(response) => Ok(response),
            Err(error) => self.invalid_response(key, method, error.to_string()).await,
        }
    }

    /// Handles an invalid response. Where the handler cannot wait for another one, the retry fails.
    async fn invalid_response<T>(
        &self,
        key: &str,
        method: &'static str,
        reason: String,
    ) -> Result<T, ClientRequestError> {
        match &self.call.round_trips {
            // A handler that awaits the response gets the error.
            Some(round_trips) if self.call.task().is_none() => {
                round_trips.fail_with_invalid_response(key, &reason);
                self.suspend(method).await
            }
            _ => Err(ClientRequestError::InvalidResponse {
                key: key.to_owned(),
                reason,
            }),
        }
    }

    /// Suspends the handler. Its driver sees that the round trip has ended and drops the handler.
    ///
    /// It never resolves in the handler, so `.ok()`, a timeout or `select!` cannot mistake a pending request for a
    /// response. It only returns in a task that the handler spawned, with an error.
    async fn suspend<T>(&self, method: &'static str) -> Result<T, ClientRequestError> {
        self.call.outbox.wake();
        self.call.outbox.closed().await;
        Err(ClientRequestError::CallEnded { method })
    }
}
