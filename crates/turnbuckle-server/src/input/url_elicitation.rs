//! URL elicitations that a call requires, and their completion.

use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{self, code},
    types::{ElicitParams, ElicitUrlParams, ElicitationCompleteParams, UrlElicitationRequiredData},
};

use super::{ClientRequestError, Elicitation};
use crate::{context::Context, lifecycle::runtime::SessionRuntime};

impl Context {
    /// Requires the user to complete URL elicitations before the call can continue.
    ///
    /// In revisions with the error "URL elicitation required", the call fails with it and lists all URLs; the client
    /// retries when the user is done. Otherwise the elicitations are sent one by one, as with [`elicit`](Self::elicit).
    /// In both cases check your own records before and after: acceptance does not mean completion.
    ///
    /// ```
    /// # struct Accounts;
    /// # impl Accounts { fn is_linked(&self, _: &turnbuckle_server::Context) -> bool { false } }
    /// # const ACCOUNTS: Accounts = Accounts;
    /// use turnbuckle_server::{Context, Elicitation, ToolError};
    ///
    /// async fn files(cx: Context) -> Result<String, ToolError> {
    ///     if !ACCOUNTS.is_linked(&cx) {
    ///         let page = Elicitation::url("Link your account", "https://files.example/link");
    ///         cx.require_url_elicitation("link", [page]).await?;
    ///     }
    ///     if !ACCOUNTS.is_linked(&cx) {
    ///         return Err(ToolError::new("the account is not linked yet"));
    ///     }
    ///     Ok("a.txt b.txt".to_owned())
    /// }
    /// ```
    pub async fn require_url_elicitation(
        &self,
        key: &str,
        elicitations: impl IntoIterator<Item = Elicitation<()>>,
    ) -> Result<(), ClientRequestError> {
        let elicitations: Vec<_> = elicitations.into_iter().collect();
        if !self.call.origin.rules.notifies_url_elicitation_end {
            for (at, elicitation) in elicitations.into_iter().enumerate() {
                self.elicit_url(&format!("{key}-{at}"), elicitation).await?;
            }
            return Ok(());
        }
        let elicitations = elicitations
            .into_iter()
            .map(|elicitation| self.url_params(elicitation))
            .collect::<Result<Vec<_>, _>>()?;
        if elicitations.is_empty() {
            return Ok(());
        }
        elicitations
            .iter()
            .for_each(|elicitation| self.note_url_elicitation(elicitation));
        Err(ClientRequestError::UrlElicitationRequired { elicitations })
    }

    /// Sends one URL elicitation.
    async fn elicit_url(
        &self,
        key: &str,
        elicitation: Elicitation<()>,
    ) -> Result<(), ClientRequestError> {
        let accepted = self.elicit(elicitation.key(key)).await?.accepted();
        accepted.ok_or_else(|| ClientRequestError::UrlElicitationDeclined {
            key: key.to_owned(),
        })
    }

    /// Returns the parameters of an elicitation, as the error lists them.
    fn url_params(
        &self,
        elicitation: Elicitation<()>,
    ) -> Result<ElicitUrlParams, ClientRequestError> {
        let required = elicitation.required_capability();
        self.require(
            elicitation.is_supported_by(self.client_capabilities()),
            required,
        )?;
        match elicitation.into_parts()?.0 {
            ElicitParams::Url(elicitation) => Ok(elicitation),
            _ => Err(ClientRequestError::InvalidRequest {
                reason: "expected a URL elicitation, got a form".to_owned(),
            }),
        }
    }

    /// Records a URL elicitation, to notify the client of its completion.
    pub(super) fn note_url_elicitation(&self, elicitation: &ElicitUrlParams) {
        let origin = &self.call.origin;
        if let (true, Some(runtime), Some(id)) = (
            origin.rules.notifies_url_elicitation_end,
            &origin.runtime,
            &elicitation.elicitation_id,
        ) {
            runtime.url_elicitations.begin(id);
        }
    }

    /// Notifies the client that a URL elicitation is complete, by the id of [`Elicitation::id`]: this client, or the
    /// one that received the elicitation. Does nothing in revisions without this notification.
    pub async fn elicitation_complete(&self, id: &str) {
        let call = &self.call;
        if call.is_replaying() {
            return;
        }
        // The stream of a task or of a finished call is closed, so the session's stream is used.
        let is_open = call.task().is_none() && !call.outbox.is_closed();
        let is_ours = |runtime: &SessionRuntime| is_open && runtime.url_elicitations.end(id);
        if call.origin.runtime.as_deref().is_some_and(is_ours) {
            call.outbox
                .push(elicitation_complete_notification(id).into());
            call.outbox.wait_for_room().await;
        } else {
            call.server.elicitation_complete(id);
        }
    }
}

const COMPLETE: &str = "notifications/elicitation/complete";

/// Encodes the completion notification.
pub(crate) fn elicitation_complete_notification(id: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(128);
    jsonrpc::write_notification(&mut message, COMPLETE, &ElicitationCompleteParams::new(id))
        .expect("our own types have string keys and no failing Serialize");
    message
}

/// The error of a call that requires URL elicitations.
pub(super) fn required(elicitations: Vec<ElicitUrlParams>, message: String) -> RpcError {
    let data = serde_json::to_value(UrlElicitationRequiredData::new(elicitations))
        .expect("our own types have string keys and no failing Serialize");
    RpcError::new(code::URL_ELICITATION_REQUIRED, message).with_data(data)
}
