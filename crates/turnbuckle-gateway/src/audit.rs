//! The audit log: a record of every request, also of refused ones.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use turnbuckle_protocol::{
    Principal, RpcError,
    jsonrpc::{RawObject, Truncated},
};
use turnbuckle_server::{middleware::JsonLines, relay::RelayedRequest};

use crate::observation::{CallRecord, Outcome};

/// Receives audit records.
///
/// Closures implement it, and [`JsonLines`] does, which writes to a file.
pub trait AuditSink: Send + Sync + 'static {
    /// Receives a record. Must not block: the response waits for it.
    fn record(&self, record: &AuditRecord);
}

impl<F: Fn(&AuditRecord) + Send + Sync + 'static> AuditSink for F {
    fn record(&self, record: &AuditRecord) {
        self(record);
    }
}

impl AuditSink for JsonLines {
    fn record(&self, record: &AuditRecord) {
        self.write(record.at, record);
    }
}

/// The record of a request. It contains neither values of arguments nor tokens.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AuditRecord {
    /// The start time.
    #[serde(skip)]
    pub at: SystemTime,
    /// The method.
    pub method: String,
    /// The server that the request belongs to. `None` for lists of all servers and unknown names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool, prompt or URI: as the server names it, or as the client did if no server has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What became of the request.
    pub outcome: Outcome,
    /// The code of an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// The duration until the response.
    #[serde(rename = "durationMs", serialize_with = "serialize_millis")]
    pub duration: Duration,
    /// How often the server requested input before this response.
    #[serde(skip_serializing_if = "is_zero")]
    pub round_trips: u32,
    /// The authenticated caller.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_principal"
    )]
    pub principal: Option<Principal>,
    /// The session or connection, as a number that gives no access to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Name and version of the client, as it reported them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The SHA-256 of the JSON text of the arguments, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_sha256: Option<String>,
}

impl AuditRecord {
    /// Creates the record of a request that has ended.
    pub(crate) fn new(
        request: &RelayedRequest,
        known: &CallRecord,
        outcome: Outcome,
        error: Option<&RpcError>,
    ) -> Self {
        let client = request.context().client().map(|client| {
            let client = format!("{}/{}", client.name, client.version);
            Truncated(&client).to_string()
        });
        let duration = known.started.elapsed();
        Self {
            at: SystemTime::now() - duration,
            method: Truncated(request.method()).to_string(),
            server: known.server().map(|server| server.name().to_owned()),
            target: known.target().map(|target| Truncated(target).to_string()),
            outcome,
            code: error.map(|error| error.code),
            duration,
            round_trips: known.round_trips(),
            principal: request.principal().cloned(),
            session: request.session().map(|session| session.to_string()),
            client,
            arguments_sha256: arguments_digest(request.params()),
        }
    }
}

fn arguments_digest(params: &str) -> Option<String> {
    let params = RawObject::parse(params).ok()?;
    let digest = Sha256::digest(params.get("arguments")?);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn serialize_millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}

/// The parts of a principal that name it.
#[derive(Serialize)]
struct PrincipalName<'a> {
    issuer: &'a str,
    subject: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
}

fn serialize_principal<S: Serializer>(
    principal: &Option<Principal>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let name = principal.as_ref().map(|principal| PrincipalName {
        issuer: &principal.issuer,
        subject: &principal.subject,
        client: principal.client.as_deref(),
    });
    name.serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The sink of a gateway.
#[derive(Clone)]
pub(crate) struct SharedSink(pub(crate) Arc<dyn AuditSink>);

impl fmt::Debug for SharedSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditSink")
    }
}
