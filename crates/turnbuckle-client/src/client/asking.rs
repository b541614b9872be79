//! One request and its answer: dressed as the revision wants it, timed, and read.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use turnbuckle_protocol::json::{self, ReadError};
use turnbuckle_protocol::method::{Capability, Method};
use turnbuckle_protocol::types::{ResultType, ServerCapabilities};
use turnbuckle_protocol::{RequestId, Versioned};

use super::{Begun, Client, expiry::expired};
use crate::answer::{RawJson, RawResult};
use crate::call::Options;
use crate::error::{CallError, ConnectError, TransportError};
use crate::lifecycle::{Agreed, Rules};
use crate::lowered::Lowered;
use crate::message::{self, Extra, HeaderList};
use crate::progress::Watching;
use crate::transport::Outgoing;

/// A result as it came, and what is known about it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) result: RawJson,
    pub(crate) kind: ResultType,
    pub(crate) rules: Arc<Rules>,
    /// How often the server asked for input before.
    pub(crate) rounds: usize,
    /// Keeps the progress of the request watched: a task that it became goes on under the same token.
    pub(crate) watching: Option<Watching>,
}

/// What goes along with a request beside its parameters.
#[derive(Debug, Default)]
pub(crate) struct Beside<'a> {
    /// What is asked for, where `Mcp-Name` repeats it.
    pub(crate) name: Option<&'a str>,
    /// Further headers, as `Mcp-Param-*`.
    pub(crate) headers: HeaderList,
}

impl Client {
    /// Asks, and reads the result, which must be complete.
    pub(crate) async fn ask<P, R>(
        &self,
        method: &'static Method,
        params: P,
        beside: Beside<'_>,
        options: &Options,
    ) -> Result<R, CallError>
    where
        P: Lowered,
        R: DeserializeOwned + Versioned,
    {
        let reply = self.ask_once(method, &params, &beside, options).await?;
        complete(method.name, &reply)?;
        reply.read(method.name)
    }

    /// Asks. A session that is over is begun anew, and a request whose response was lost is sent again where that is safe;
    /// both at most once.
    pub(crate) async fn ask_once<P>(
        &self,
        method: &'static Method,
        params: &P,
        beside: &Beside<'_>,
        options: &Options,
    ) -> Result<Reply, CallError>
    where
        P: Lowered,
    {
        let agreed = self.inner.agreed();
        let mut request = self.request(&agreed, method, params, beside, options)?;
        let begun = Begun::now(options);
        let source = match self.exchange(&mut request, options, &begun).await {
            Err(CallError::Disconnected { source, .. }) => source,
            outcome => return outcome,
        };
        drop(request);
        // Rare, and would make every request as large.
        if begins_anew(&source, &agreed.rules) {
            let left = begun.left(options);
            let anew = self.ask_anew(agreed, source, method, params, beside, left);
            return Box::pin(anew).await;
        }
        if self.lost_response(&source, &agreed.rules) {
            let left = begun.left(options);
            let again = self.reissue(agreed, source, method, params, beside, left);
            return Box::pin(again).await;
        }
        Err(CallError::Disconnected {
            method: method.name,
            source,
        })
    }

    /// Begins a new session in place of one that is over, and asks again.
    async fn ask_anew<P>(
        &self,
        over: Arc<Agreed>,
        source: TransportError,
        method: &'static Method,
        params: &P,
        beside: &Beside<'_>,
        // Both requests have one total. A new session has a time limit of its own.
        options: Options,
    ) -> Result<Reply, CallError>
    where
        P: Lowered,
    {
        let renewed = Arc::clone(&self.inner).renewed(over).await;
        renewed.map_err(|error| {
            tracing::debug!(%error, "no new session");
            let source = match error {
                ConnectError::Authorization(failure) => TransportError::Authorization(failure),
                _ => source,
            };
            disconnected(method.name, source)
        })?;
        let agreed = self.inner.agreed();
        let mut request = self.request(&agreed, method, params, beside, &options)?;
        let begun = Begun::now(&options);
        self.exchange(&mut request, &options, &begun).await
    }

    /// Writes a request as the server wants it.
    pub(super) fn request(
        &self,
        agreed: &Agreed,
        method: &'static Method,
        params: &impl Lowered,
        beside: &Beside<'_>,
        options: &Options,
    ) -> Result<Request, CallError> {
        let rules = &agreed.rules;
        offered(method, &agreed.server.capabilities, rules)?;
        let id = self.inner.ids.next();
        // Whatever may take long is asked to tell how far it is, since that is what patience depends on.
        let reports = method.may_ask || options.on_progress.is_some();
        let watching = id.as_i64().filter(|_| reports).map(|token| {
            let watchers = &self.inner.hub.watchers;
            watchers.watch(token, options.on_progress.clone())
        });
        let extra = Extra {
            progress_token: reports.then_some(&id),
            log_level: self.inner.log_level(),
            meta: Some(&options.meta).filter(|meta| !meta.is_empty()),
        };
        let body = written(&id, method, params, rules, &extra)?;
        let mut headers = message::headers(rules, method.name, beside.name);
        headers.extend_from_slice(&beside.headers);
        let outgoing = Outgoing {
            id,
            method: method.name,
            body,
            headers,
            rules: Arc::clone(rules),
            held: options.held.clone(),
        };
        Ok(Request { outgoing, watching })
    }

    /// Sends a request and waits for its answer, as long as patience lasts.
    pub(super) async fn exchange(
        &self,
        request: &mut Request,
        options: &Options,
        begun: &Begun,
    ) -> Result<Reply, CallError> {
        let Request { outgoing, watching } = request;
        let (hub, method) = (&self.inner.hub, outgoing.method);
        let unanswered = hub.given_up.unless_answered(outgoing.id.clone());
        let answer = tokio::select! {
            biased;
            answer = self.inner.transport.request(outgoing, hub) => answer,
            limit = expired(options, hub, watching.as_ref(), begun) => {
                return Err(CallError::TimedOut { method, limit });
            }
        };
        unanswered.answered();
        let answer = answer.map_err(|source| disconnected(method, source))?;
        let result = answer
            .outcome
            .map_err(|error| CallError::refused(method, error, answer.http))?;
        Reply::new(method, result, &outgoing.rules, watching.take())
    }
}

/// A request that is ready to be sent, and who is told how far it has come.
pub(super) struct Request {
    outgoing: Outgoing,
    watching: Option<Watching>,
}

/// Writes a request in the shape of the revision that is spoken.
fn written(
    id: &RequestId,
    method: &'static Method,
    params: &impl Lowered,
    rules: &Rules,
    extra: &Extra<'_>,
) -> Result<Vec<u8>, CallError> {
    let params = params.lowered(rules.revision);
    let body = message::request(id, method.name, &*params, rules, extra);
    body.map_err(|error| CallError::Unsendable {
        method: method.name,
        reason: error.to_string(),
    })
}

impl Reply {
    fn new(
        method: &'static str,
        result: RawResult,
        rules: &Arc<Rules>,
        watching: Option<Watching>,
    ) -> Result<Self, CallError> {
        let (result, kind) = match rules.result_type {
            true => result
                .into_parts()
                .map_err(|error| invalid(method, &error))?,
            // Not even an object is looked for in vain: whoever reads it will say so.
            false => (result.json, ResultType::Complete),
        };
        Ok(Self {
            result,
            kind,
            rules: Arc::clone(rules),
            rounds: 0,
            watching,
        })
    }

    /// Reads the result in its newest shape.
    pub(crate) fn read<R: DeserializeOwned + Versioned>(
        &self,
        method: &'static str,
    ) -> Result<R, CallError> {
        let mut result: R =
            json::from_str(self.result.as_str()).map_err(|error| invalid(method, &error))?;
        result.raise(self.rules.revision);
        Ok(result)
    }
}

/// Breaks with a reply unless something follows it. By value: what a future has only looked at stays part of it.
pub(crate) fn over_unless(
    reply: Result<Reply, CallError>,
    something_follows: impl FnOnce(&Result<Reply, CallError>) -> bool,
) -> ControlFlow<Result<Reply, CallError>, Result<Reply, CallError>> {
    match something_follows(&reply) {
        true => ControlFlow::Continue(reply),
        false => ControlFlow::Break(reply),
    }
}

/// Refuses every kind of result but a complete one.
pub(crate) fn complete(method: &'static str, reply: &Reply) -> Result<(), CallError> {
    match &reply.kind {
        ResultType::Complete => Ok(()),
        other => Err(CallError::InvalidAnswer {
            method,
            reason: format!("a result of type `{}`", other.as_str()),
        }),
    }
}

fn invalid(method: &'static str, error: &ReadError) -> CallError {
    CallError::InvalidAnswer {
        method,
        reason: error.to_string(),
    }
}

fn disconnected(method: &'static str, source: TransportError) -> CallError {
    match source {
        TransportError::NotAnAnswer { reason } => CallError::InvalidAnswer { method, reason },
        source => CallError::disconnected(method, source),
    }
}

/// Says whether the server has certainly not looked at the request, and wants a new beginning.
fn begins_anew(error: &TransportError, rules: &Rules) -> bool {
    match error {
        TransportError::SessionEnded => true,
        // It used to answer as 2026-07-28 does, and now does not even answer in JSON-RPC.
        TransportError::Refused(refusal) => {
            !rules.session && matches!(refusal.status.as_u16(), 400 | 404 | 405)
        }
        _ => false,
    }
}

/// Refuses to ask for what the server did not declare.
fn offered(
    method: &'static Method,
    capabilities: &ServerCapabilities,
    rules: &Rules,
) -> Result<(), CallError> {
    if !method.is_in(rules.revision) {
        return Err(CallError::NotInRevision {
            method: method.name,
            revision: rules.revision,
        });
    }
    let Some(needed) = method.capability else {
        return Ok(());
    };
    let (declared, capability) = match needed {
        Capability::Tools => (capabilities.tools.is_some(), "tools"),
        Capability::Resources => (capabilities.resources.is_some(), "resources"),
        Capability::ResourcesSubscribe => {
            let resources = capabilities.resources.as_ref();
            let subscribe = resources.and_then(|resources| resources.subscribe);
            (subscribe == Some(true), "resources.subscribe")
        }
        Capability::Prompts => (capabilities.prompts.is_some(), "prompts"),
        Capability::Completions => {
            let declared = capabilities.completions.is_some() || !rules.completions_declared;
            (declared, "completions")
        }
        Capability::Logging => (capabilities.logging.is_some(), "logging"),
        // Asked for by those who know both designs of tasks, or declared by ourselves.
        _ => return Ok(()),
    };
    match declared {
        true => Ok(()),
        false => Err(CallError::NotOffered {
            method: method.name,
            capability,
        }),
    }
}
