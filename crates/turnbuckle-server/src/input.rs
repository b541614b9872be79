//! Asking the client: forms, URLs, its model, its roots.
//!
//! A handler asks and awaits. Where requests may go to the client, the question is one and the handler waits. Where
//! they may not, an unanswered question ends the round, and the handler runs again from the top when the client
//! returns with the answer: see [`journal`] for what keeps the two runs the same.

mod conversation;
mod effects;
mod error;
mod journal;
mod owner;
mod questions;
mod rounds;
mod seal;
mod secrets;
mod visits;

pub use error::AskError;
pub(crate) use error::undeclared;
pub use questions::{Elicitation, Elicited, Form, Sampling};

pub(crate) use owner::owner;
pub(crate) use rounds::{Rounds, Subject};
pub(crate) use seal::Keys;
pub(crate) use visits::visit_ended;

use turnbuckle_protocol::{
    revision::Versioned,
    types::{
        ClientCapabilities, CreateMessageResult, ElicitParams, ElicitResult, EmptyParams,
        ListRootsResult, Root,
    },
};

use crate::{context::Context, lifecycle::Asking, tasks};

impl Context {
    /// Asks the user, by a form or by sending them to a URL.
    ///
    /// `key` names the question within this handler; it stays the same whenever the handler runs again, and no two
    /// questions of a call share one: who asks again in a loop counts, as in `format!("name-{attempt}")`. Effects before
    /// a question belong into [`once`](Self::once): the handler may be run from the top again to reach this point.
    ///
    /// ```
    /// # use schemars::JsonSchema;
    /// # use serde::Deserialize;
    /// use turnbuckle_server::{Context, Form, ToolError};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Signature {
    ///     /// Your full name.
    ///     name: String,
    /// }
    ///
    /// async fn sign(cx: Context) -> Result<String, ToolError> {
    ///     let question = Signature::ask("Who should sign this?");
    ///     match cx.elicit("signature", question).await?.accepted() {
    ///         Some(signature) => Ok(format!("signed by {}", signature.name)),
    ///         None => Ok("not signed".to_owned()),
    ///     }
    /// }
    /// ```
    pub async fn elicit<T>(
        &self,
        key: &str,
        question: Elicitation<T>,
    ) -> Result<Elicited<T>, AskError> {
        let needed = question.needs();
        self.require(question.is_offered_by(self.client_capabilities()), needed)?;
        let (mut params, read) = question.into_parts()?;
        if let ElicitParams::Url(visit) = &params {
            self.begins(visit);
        }
        let answer: ElicitResult = self.ask(key, "elicitation/create", &mut params).await?;
        match read(answer) {
            Ok(elicited) => Ok(elicited),
            Err(reason) => self.bad_answer(key, "elicitation/create", reason).await,
        }
    }

    /// Asks the client's model.
    pub async fn sample(
        &self,
        key: &str,
        question: Sampling,
    ) -> Result<CreateMessageResult, AskError> {
        let needed = question.needs();
        self.require(question.is_offered_by(self.client_capabilities()), needed)?;
        self.ask(key, "sampling/createMessage", &mut question.into_params()?)
            .await
    }

    /// Asks which folders or other roots the user works in.
    pub async fn roots(&self, key: &str) -> Result<Vec<Root>, AskError> {
        let needed =
            ClientCapabilities::new().roots(turnbuckle_protocol::types::RootsCapability::default());
        self.require(self.client_capabilities().roots.is_some(), needed)?;
        let result: ListRootsResult = self
            .ask(key, "roots/list", &mut EmptyParams::default())
            .await?;
        Ok(result.roots)
    }

    /// Asks the client for a sign of life.
    ///
    /// Where the protocol has no such request, the open call is the sign, and there is nothing to wait for.
    pub async fn ping(&self) -> Result<(), AskError> {
        let call = &self.call;
        match &call.caller.live {
            // Without a handshake nobody is there to answer.
            Some(live) if call.caller.client.info.is_some() => live
                .ask(
                    &call.outbox,
                    "ping",
                    b"{}",
                    self.call.tags(),
                    call.server.patience(),
                )
                .await
                .map(drop),
            _ => Ok(()),
        }
    }

    fn require(&self, offered: bool, needed: ClientCapabilities) -> Result<(), AskError> {
        if offered {
            Ok(())
        } else {
            Err(AskError::Undeclared {
                needed: Box::new(needed),
            })
        }
    }

    async fn ask<P, R>(
        &self,
        key: &str,
        method: &'static str,
        params: &mut P,
    ) -> Result<R, AskError>
    where
        P: Versioned + serde::Serialize,
        R: Versioned + serde::de::DeserializeOwned,
    {
        let call = &self.call;
        let rules = call.caller.rules;
        if !call.caller.may_be_asked {
            return Err(AskError::TooEarly { method });
        }
        if !call.asks(key) {
            return Err(AskError::Repeated {
                key: key.to_owned(),
            });
        }
        let mut question = Vec::with_capacity(256);
        rules.write(params, &mut question);
        let answer = match (rules.asking, &call.caller.live, &call.rounds) {
            _ if call.task().is_some() => tasks::ask(call, key, method, question).await?,
            (Asking::Request, Some(live), _) => {
                let patience = call.server.patience();
                live.ask(&call.outbox, method, &question, call.tags(), patience)
                    .await?
            }
            (Asking::Round, _, Some(rounds)) => match rounds.ask(key, method, question) {
                Some(answer) => answer,
                None => return self.end_round(method).await,
            },
            _ => return Err(AskError::Unreachable { method }),
        };
        match rules.read(&answer) {
            Ok(answer) => Ok(answer),
            Err(error) => self.bad_answer(key, method, error.to_string()).await,
        }
    }

    /// An answer that is not one: where the handler cannot wait for a better one, the retry itself was wrong.
    async fn bad_answer<T>(
        &self,
        key: &str,
        method: &'static str,
        reason: String,
    ) -> Result<T, AskError> {
        match &self.call.rounds {
            // Who waits for an answer can be told that it is none.
            Some(rounds) if self.call.task().is_none() => {
                rounds.fail_with_bad_answer(key, &reason);
                self.end_round(method).await
            }
            _ => Err(AskError::BadAnswer {
                key: key.to_owned(),
                reason,
            }),
        }
    }

    /// Never resolves in the handler: whoever drives it sees that the round is over and drops it.
    ///
    /// So no `.ok()`, timeout or `select!` in a handler can mistake an open question for an answer. Only a task that the
    /// handler left behind comes out of here, to learn that nobody will answer.
    async fn end_round<T>(&self, method: &'static str) -> Result<T, AskError> {
        self.call.outbox.wake();
        self.call.outbox.closed().await;
        Err(AskError::Gone { method })
    }
}
