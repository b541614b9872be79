//! Finds out which era a server is of: asks as 2026-07-28 does, and understands every answer.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::StatusCode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use turnbuckle_protocol::RpcError;
use turnbuckle_protocol::json;
use turnbuckle_protocol::jsonrpc::code;
use turnbuckle_protocol::method;
use turnbuckle_protocol::types::{
    ClientCapabilities, DiscoverResult, EmptyParams, Implementation, UnsupportedVersionData,
};

use super::session::{self, newest_handshake};
use super::{Agreed, Era, Rules, stateless};
use crate::EraChoice;
use crate::answer::{Answer, RawJson};
use crate::client::{Ids, is_lost_response};
use crate::error::{ConnectError, TransportError};
use crate::held::{Elapsed, within};
use crate::hub::Hub;
use crate::message;
use crate::transport::{Outgoing, Transport};

const DISCOVER: &str = method::SERVER_DISCOVER.name;

/// Everything that is needed to ask before anything is agreed.
pub(crate) struct Asking<'c> {
    pub(crate) transport: &'c Transport,
    pub(crate) hub: &'c Arc<Hub>,
    pub(crate) ids: &'c Ids,
    pub(crate) info: &'c Implementation,
    pub(crate) capabilities: &'c ClientCapabilities,
    /// How long the handshake may take.
    pub(crate) patience: Duration,
    /// Where it is noted what was agreed upon.
    pub(crate) agreed: &'c ArcSwap<Agreed>,
}

/// Agrees with a server on a revision.
pub(crate) async fn agree(
    asking: &Asking<'_>,
    choice: EraChoice,
    remembered: Option<Era>,
) -> Result<Arc<Agreed>, ConnectError> {
    match (choice, remembered) {
        (EraChoice::Legacy, _) => session::open(asking).await,
        (EraChoice::Auto, Some(Era::Legacy)) => match session::open(asking).await {
            // It used to be otherwise, so it is asked as if it were unknown.
            Err(error) if shakes_no_hands(&error) => probe(asking, choice).await,
            outcome => outcome,
        },
        _ => probe(asking, choice).await,
    }
}

/// What the answer to the first question says about the server.
#[derive(Debug)]
enum Finding {
    /// It answered as 2026-07-28 does.
    Modern(Box<DiscoverResult>),
    /// It speaks 2026-07-28, but not this version; these it names.
    Versions(Vec<String>),
    /// It is of the newer kind, and refuses.
    Refused(RpcError, Option<StatusCode>),
    /// It does not know the question.
    Legacy,
    /// It has this status for the question, as older servers do, and others who are no server at all.
    Status(TransportError),
    /// It says nothing: as older servers do, and others who are slow to start.
    Silence,
}

async fn probe(asking: &Asking<'_>, choice: EraChoice) -> Result<Arc<Agreed>, ConnectError> {
    let rules = Arc::new(stateless::rules(asking.info, asking.capabilities));
    let mut finding = first_question(asking, &rules, choice).await?;
    if let Finding::Silence = finding {
        let error = match session::open(asking).await {
            Err(error) if shakes_no_hands(&error) => error,
            outcome => return outcome,
        };
        // It talks now, and knows no handshake.
        finding = match first_question(asking, &rules, choice).await? {
            Finding::Legacy | Finding::Status(_) | Finding::Silence => return Err(error),
            finding => finding,
        };
    }
    if let Finding::Versions(named) = &finding {
        // A server that refuses the very version it names is asked once more.
        if named.iter().any(|name| name == rules.revision.as_str()) {
            finding = first_question(asking, &rules, choice).await?;
        }
    }
    match finding {
        Finding::Modern(result) => modern(asking, rules, choice, *result).await,
        Finding::Versions(named) => match newest_handshake(&named) {
            Some(revision) if choice == EraChoice::Auto => {
                session::initialize(asking, revision).await
            }
            _ => Err(ConnectError::NoCommonRevision { server: named }),
        },
        Finding::Refused(source, status) => Err(ConnectError::Refused {
            method: DISCOVER,
            source: Box::new(source),
            status,
        }),
        Finding::Legacy if choice == EraChoice::Modern => Err(ConnectError::NoCommonRevision {
            server: vec!["a revision with a handshake".to_owned()],
        }),
        Finding::Status(error) if choice == EraChoice::Modern => {
            Err(ConnectError::Unreachable(error))
        }
        Finding::Legacy | Finding::Status(_) | Finding::Silence => session::open(asking).await,
    }
}

async fn modern(
    asking: &Asking<'_>,
    rules: Arc<Rules>,
    choice: EraChoice,
    result: DiscoverResult,
) -> Result<Arc<Agreed>, ConnectError> {
    let named = &result.supported_versions;
    if !named.iter().any(|name| name == rules.revision.as_str()) {
        let revision = newest_handshake(named);
        return match revision {
            Some(revision) if choice == EraChoice::Auto => {
                session::initialize(asking, revision).await
            }
            _ => Err(ConnectError::NoCommonRevision {
                server: result.supported_versions,
            }),
        };
    }
    Ok(asking.settle(Agreed {
        rules,
        server: Arc::new(stateless::described(result)),
    }))
}

/// Asks the server about itself.
async fn first_question(
    asking: &Asking<'_>,
    rules: &Arc<Rules>,
    choice: EraChoice,
) -> Result<Finding, ConnectError> {
    // Silence on HTTP says nothing about the era; elsewhere, older servers may pass over what they do not know.
    let silence_tells = choice == EraChoice::Auto && !asking.transport.is_http();
    let limit = match silence_tells {
        true => asking.hub.limits.probe,
        false => asking.patience,
    };
    let mut answer = discover(asking, rules, limit).await?;
    let is_lost = |error| asking.transport.is_http() && is_lost_response(error);
    // It changes nothing, so it can be asked again under another id, once.
    if let Ok(Err(error)) = &answer
        && is_lost(error)
    {
        answer = discover(asking, rules, limit).await?;
    }
    match answer {
        Ok(Ok(answer)) => Ok(judge(&answer, asking.transport.is_http())),
        Ok(Err(TransportError::Refused(refusal))) if tells_legacy(refusal.status) => {
            Ok(Finding::Status(TransportError::Refused(refusal)))
        }
        // What is no answer to this question comes from someone who does not know it.
        Ok(Err(TransportError::NotAnAnswer { .. })) => Ok(Finding::Legacy),
        Ok(Err(error)) => Err(error.into()),
        Err(_) if silence_tells => Ok(Finding::Silence),
        Err(_) => Err(ConnectError::TimedOut {
            method: DISCOVER,
            limit,
        }),
    }
}

async fn discover(
    asking: &Asking<'_>,
    rules: &Arc<Rules>,
    limit: Duration,
) -> Result<Result<Result<Answer, TransportError>, Elapsed>, ConnectError> {
    let params = EmptyParams::default();
    let mut question = asking.question(DISCOVER, &params, Arc::clone(rules))?;
    let held = question.held.clone();
    let answer = asking.transport.request(&mut question, asking.hub);
    Ok(within(limit, held.as_deref(), answer).await)
}

fn judge(answer: &Answer, http: bool) -> Finding {
    let status = answer.http.as_ref().map(|facts| facts.status);
    match &answer.outcome {
        Ok(result) => match json::from_str(result.json.as_str()) {
            Ok(result) => Finding::Modern(Box::new(result)),
            Err(_) => Finding::Legacy,
        },
        Err(error) if error.code == code::UNSUPPORTED_VERSION => {
            Finding::Versions(named_versions(error))
        }
        Err(error) if only_newer(error) => Finding::Refused(error.clone(), status),
        // Neither authorization nor a broken server says anything about the era.
        Err(error)
            if http && !status.is_none_or(tells_legacy) && status != Some(StatusCode::OK) =>
        {
            Finding::Refused(error.clone(), status)
        }
        Err(_) => Finding::Legacy,
    }
}

fn named_versions(error: &RpcError) -> Vec<String> {
    let data = error.data.clone().unwrap_or_default();
    json::from_value::<UnsupportedVersionData>(&data)
        .map(|data| data.supported)
        .unwrap_or_default()
}

/// Says whether nobody but a server of 2026-07-28 would speak of such an error.
pub(crate) fn only_newer(error: &RpcError) -> bool {
    matches!(
        error.code,
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION
    )
}

/// Says whether a handshake was refused in a way that a server of the newer kind may have.
fn shakes_no_hands(error: &ConnectError) -> bool {
    match error {
        ConnectError::Refused { .. } | ConnectError::NoCommonRevision { .. } => true,
        ConnectError::Unreachable(TransportError::Refused(refusal)) => tells_legacy(refusal.status),
        _ => false,
    }
}

/// The status with which older servers meet a request that they do not understand.
fn tells_legacy(status: StatusCode) -> bool {
    status.is_client_error()
        && !matches!(
            status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
        )
}

impl Asking<'_> {
    /// Asks, and waits as long as a handshake may take.
    pub(crate) async fn ask(
        &self,
        method: &'static str,
        params: &impl Serialize,
        rules: Arc<Rules>,
    ) -> Result<Answer, ConnectError> {
        let mut question = self.question(method, params, rules)?;
        let (limit, held) = (self.patience, question.held.clone());
        let answer = self.transport.request(&mut question, self.hub);
        match within(limit, held.as_deref(), answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ConnectError::TimedOut { method, limit }),
        }
    }

    /// Notes what was agreed upon.
    pub(super) fn settle(&self, agreed: Agreed) -> Arc<Agreed> {
        let agreed = Arc::new(agreed);
        self.agreed.store(Arc::clone(&agreed));
        agreed
    }

    /// Says that the handshake is done.
    pub(super) async fn notify_initialized(&self, rules: &Rules) -> Result<(), ConnectError> {
        let mut message = Vec::new();
        let method = method::INITIALIZED.name;
        turnbuckle_protocol::jsonrpc::write_notification(&mut message, method, &())
            .expect("a constant is always JSON");
        let headers = message::version_header(rules);
        self.transport.send(message, headers, self.hub).await?;
        Ok(())
    }

    fn question(
        &self,
        method: &'static str,
        params: &impl Serialize,
        rules: Arc<Rules>,
    ) -> Result<Outgoing, ConnectError> {
        let id = self.ids.next();
        let body = message::request(&id, method, params, &rules, &message::Extra::default());
        Ok(Outgoing {
            body: body.map_err(|error| ConnectError::InvalidAnswer {
                method,
                reason: error.to_string(),
            })?,
            headers: message::headers(&rules, method, None),
            id,
            method,
            rules,
            held: self.transport.held(),
        })
    }
}

/// Reads the result of a handshake.
pub(super) fn read<T: DeserializeOwned>(
    method: &'static str,
    result: &RawJson,
) -> Result<T, ConnectError> {
    json::from_str(result.as_str()).map_err(|error| ConnectError::InvalidAnswer {
        method,
        reason: error.to_string(),
    })
}
