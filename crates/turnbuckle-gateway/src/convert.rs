//! Conversion of results and client requests where the revisions of client and server differ.
//!
//! Everything is passed on as text if possible: a payload of an older revision is valid in a newer one. Only a payload
//! of a newer revision is parsed, and written in the older one.

use serde::{Serialize, de::DeserializeOwned};
use turnbuckle_protocol::{
    Meta, Revision, RpcError, VersionedPayload, json,
    jsonrpc::{RawObject, code},
    meta::keys,
    types::{
        CallToolResult, CompleteResult, CreateMessageParams, CreateMessageResult, ElicitParams,
        ElicitResult, GetPromptResult, Implementation, ListRootsResult, Prompt, ReadResourceResult,
        Resource, ResourceTemplate, Tool,
    },
};

use crate::{
    lifecycle::{ClientRequestPath, RevisionPair},
    raw_json::{ObjectWriter, edit},
};

/// Members that only modern results have.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// Returns the `_meta` object with the identity of this server.
pub(crate) fn identity(info: &Implementation) -> String {
    let mut meta = Meta::default();
    meta.set_server_info(info);
    serde_json::to_string(&meta).expect("`_meta` has string keys")
}

/// Converts the result of a request for the client. `identity` is the `_meta` that names this server.
pub(crate) fn result(
    method: &str,
    result: &str,
    pair: RevisionPair,
    identity: &str,
) -> Result<String, RpcError> {
    if pair.adds_result_members() {
        return with_result_members(method, result, identity);
    }
    if pair.has_server_info() {
        return with_identity(result, identity);
    }
    if !pair.needs_downgrade() {
        return Ok(result.to_owned());
    }
    let RevisionPair {
        downstream,
        upstream,
    } = pair;
    match method {
        "tools/call" => downgrade::<CallToolResult>(result, upstream, downstream),
        "prompts/get" => downgrade::<GetPromptResult>(result, upstream, downstream),
        "resources/read" => downgrade::<ReadResourceResult>(result, upstream, downstream),
        "completion/complete" => downgrade::<CompleteResult>(result, upstream, downstream),
        _ => edit(result, &MODERN_MEMBERS, &[]),
    }
}

/// Adds the members that every modern result has to a legacy result.
fn with_result_members(method: &str, result: &str, identity: &str) -> Result<String, RpcError> {
    let object = RawObject::parse(result)?;
    let mut out = ObjectWriter::new();
    for (name, value) in object.members() {
        if &*name != "_meta" && !MODERN_MEMBERS.contains(&&*name) {
            out.member(&name, value);
        }
    }
    out.string("resultType", "complete");
    if has_cache_hint(method) {
        out.member("ttlMs", "0");
        out.string("cacheScope", "private");
    }
    out.member("_meta", &merged_meta(object.get("_meta"), identity)?);
    Ok(out.finish())
}

fn has_cache_hint(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "resources/read" | "skills/get")
}

/// Replaces the identity of the server in a modern result.
fn with_identity(result: &str, identity: &str) -> Result<String, RpcError> {
    let object = RawObject::parse(result)?;
    let meta = merged_meta(object.get("_meta"), identity)?;
    edit(result, &[], &[("_meta", meta)])
}

/// Returns the members of `_meta` with our identity in place of the server's.
fn merged_meta(meta: Option<&str>, identity: &str) -> Result<String, RpcError> {
    let Some(meta) = meta else {
        return Ok(identity.to_owned());
    };
    let identity = RawObject::parse(identity)?;
    let info = identity.get(keys::SERVER_INFO).unwrap_or("null").to_owned();
    edit(meta, &[keys::SUBSCRIPTION_ID], &[(keys::SERVER_INFO, info)])
}

/// The kind of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(crate) fn from_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Returns whether the gateway requests all pages at once. Lists of resources can be long.
    pub(crate) fn is_fetched_whole(self) -> bool {
        matches!(self, Self::Tools | Self::Prompts)
    }

    /// The member of the result that holds the items.
    pub(crate) fn items_member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item that identifies it.
    pub(crate) fn name_member(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// Converts an item for the client.
    pub(crate) fn item(self, item: &str, pair: RevisionPair) -> Result<String, RpcError> {
        if !pair.needs_downgrade() {
            return Ok(item.to_owned());
        }
        let RevisionPair {
            downstream,
            upstream,
        } = pair;
        match self {
            Self::Tools => downgrade::<Tool>(item, upstream, downstream),
            Self::Prompts => downgrade::<Prompt>(item, upstream, downstream),
            Self::Resources => downgrade::<Resource>(item, upstream, downstream),
            Self::Templates => downgrade::<ResourceTemplate>(item, upstream, downstream),
        }
    }
}

/// Converts the parameters of a client request.
pub(crate) fn client_request_params(
    method: &str,
    params: &str,
    from: Revision,
    to: Revision,
) -> Result<String, RpcError> {
    if from <= to {
        return Ok(params.to_owned());
    }
    match method {
        "elicitation/create" => downgrade::<ElicitParams>(params, from, to),
        "sampling/createMessage" => downgrade::<CreateMessageParams>(params, from, to),
        _ => Ok(params.to_owned()),
    }
}

/// Converts the result of a client request.
pub(crate) fn client_request_result(
    method: &str,
    result: &str,
    from: Revision,
    to: Revision,
) -> Result<String, RpcError> {
    if from <= to {
        return Ok(result.to_owned());
    }
    match method {
        "elicitation/create" => downgrade::<ElicitResult>(result, from, to),
        "sampling/createMessage" => downgrade::<CreateMessageResult>(result, from, to),
        "roots/list" => downgrade::<ListRootsResult>(result, from, to),
        _ => Ok(result.to_owned()),
    }
}

fn downgrade<T>(text: &str, from: Revision, to: Revision) -> Result<String, RpcError>
where
    T: VersionedPayload + Serialize + DeserializeOwned,
{
    let mut value: T = json::from_str(text).map_err(RpcError::from)?;
    value.upgrade_from(from);
    value.downgrade_to(to);
    Ok(serde_json::to_string(&value).expect("our own types have string keys"))
}

/// Gives an error the code that the client's revision has for it: a missing resource is -32002 in the legacy era, and
/// -32602 in the modern one. A capability that the client did not declare has a code in the modern era only.
pub(crate) fn error(method: &str, error: RpcError, pair: RevisionPair) -> RpcError {
    let code = match pair.client_request_path() {
        ClientRequestPath::Suspend if error.code == code::RESOURCE_NOT_FOUND => {
            code::INVALID_PARAMS
        }
        ClientRequestPath::RoundTrips
            if error.code == code::INVALID_PARAMS && method == "resources/read" =>
        {
            code::RESOURCE_NOT_FOUND
        }
        ClientRequestPath::RoundTrips if error.code == code::MISSING_CAPABILITY => {
            return RpcError::internal(error.message);
        }
        _ => return error,
    };
    RpcError { code, ..error }
}
