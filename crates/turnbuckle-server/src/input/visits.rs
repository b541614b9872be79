//! Web pages that the user has to visit, and the end of such a visit.

use turnbuckle_protocol::{
    RpcError,
    jsonrpc::{self, code},
    types::{ElicitParams, ElicitUrlParams, ElicitationCompleteParams, UrlElicitationRequiredData},
};

use super::{AskError, Elicitation};
use crate::{context::Context, lifecycle::live::Live};

impl Context {
    /// Goes on only after the user has agreed to visit these pages: where the call cannot be done before.
    ///
    /// Where the protocol has an error for it, the call ends with that error, which lists all the pages, and the client
    /// calls again when the user is done; otherwise the user is asked for one page after the other, as by
    /// [`elicit`](Self::elicit). Either way ask your own records first whether the visit is needed, and ask them again
    /// after it: that the user agreed does not mean that they finished.
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
    ///         cx.visit_first("link", [page]).await?;
    ///     }
    ///     if !ACCOUNTS.is_linked(&cx) {
    ///         return Err(ToolError::new("the account is not linked yet"));
    ///     }
    ///     Ok("a.txt b.txt".to_owned())
    /// }
    /// ```
    pub async fn visit_first(
        &self,
        key: &str,
        pages: impl IntoIterator<Item = Elicitation<()>>,
    ) -> Result<(), AskError> {
        let pages: Vec<_> = pages.into_iter().collect();
        if !self.call.caller.rules.announces_visits {
            for (at, page) in pages.into_iter().enumerate() {
                self.visit(&format!("{key}-{at}"), page).await?;
            }
            return Ok(());
        }
        let visits = pages
            .into_iter()
            .map(|page| self.announced(page))
            .collect::<Result<Vec<_>, _>>()?;
        if visits.is_empty() {
            return Ok(());
        }
        visits.iter().for_each(|visit| self.begins(visit));
        Err(AskError::VisitFirst { visits })
    }

    /// Asks for one visit.
    async fn visit(&self, key: &str, page: Elicitation<()>) -> Result<(), AskError> {
        let went = self.elicit(key, page).await?.accepted();
        went.ok_or_else(|| AskError::Unvisited {
            key: key.to_owned(),
        })
    }

    /// A visit as the error lists it.
    fn announced(&self, page: Elicitation<()>) -> Result<ElicitUrlParams, AskError> {
        let needed = page.needs();
        self.require(page.is_offered_by(self.client_capabilities()), needed)?;
        match page.into_parts()?.0 {
            ElicitParams::Url(visit) => Ok(visit),
            _ => Err(AskError::Unaskable {
                reason: "a form is no page to visit".to_owned(),
            }),
        }
    }

    /// Notes that the client is asked for a visit, to be able to tell it of the end.
    pub(super) fn begins(&self, visit: &ElicitUrlParams) {
        let caller = &self.call.caller;
        if let (true, Some(live), Some(id)) = (
            caller.rules.announces_visits,
            &caller.live,
            &visit.elicitation_id,
        ) {
            live.visits.begin(id);
        }
    }

    /// Tells the client that a visit is over, by the id that [`Elicitation::id`] gave: this client, or the one that was
    /// asked for it. Where the protocol has no such message, nothing happens.
    pub async fn elicitation_complete(&self, id: &str) {
        let call = &self.call;
        if call.is_muted() {
            return;
        }
        // The stream of a task, or of a call that is answered, is closed: then the session is told by itself.
        let is_open = call.task().is_none() && !call.outbox.is_closed();
        let is_ours = |live: &Live| is_open && live.visits.end(id);
        if call.caller.live.as_deref().is_some_and(is_ours) {
            call.outbox.push(visit_ended(id).into());
            call.outbox.flushed().await;
        } else {
            call.server.elicitation_complete(id);
        }
    }
}

const COMPLETE: &str = "notifications/elicitation/complete";

/// The notification that a visit is over.
pub(crate) fn visit_ended(id: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(128);
    jsonrpc::write_notification(&mut message, COMPLETE, &ElicitationCompleteParams::new(id))
        .expect("our own types have string keys and no failing Serialize");
    message
}

/// The error of a call that has to wait for visits.
pub(super) fn required(visits: Vec<ElicitUrlParams>, message: String) -> RpcError {
    let data = serde_json::to_value(UrlElicitationRequiredData::new(visits))
        .expect("our own types have string keys and no failing Serialize");
    RpcError::new(code::URL_ELICITATION_REQUIRED, message).with_data(data)
}
