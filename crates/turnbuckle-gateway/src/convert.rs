//! Conversion of results and client requests where the revisions of client and server differ.
//!
//! Everything is passed on as text if possible: a payload of an older revision is valid in a newer one. A payload of a
//! newer revision is parsed and converted, and what the conversion changes is applied to its text: unknown members and
//! the spelling of numbers stay as they are.

use std::{borrow::Cow, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
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
    calls::trace,
    lifecycle::{ClientRequestPath, RevisionPair, is_stateless},
    raw_json::{ObjectWriter, apply_changes, edit, edit_object},
};

/// Members that only modern results have.
const MODERN_MEMBERS: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];

/// The identity of this server, which modern results have.
#[derive(Clone, Debug)]
pub(crate) struct ResultIdentity {
    /// The `_meta` object with only the identity.
    meta: Arc<str>,
    /// Its member.
    info: Arc<str>,
}

impl ResultIdentity {
    pub(crate) fn new(info: &Implementation) -> Self {
        let mut meta = Meta::default();
        meta.set_server_info(info);
        let json = |value| serde_json::to_string(value).expect("`_meta` has string keys");
        Self {
            info: json(meta.get(keys::SERVER_INFO).unwrap_or(&Value::Null)).into(),
            meta: serde_json::to_string(&meta)
                .expect("`_meta` has string keys")
                .into(),
        }
    }

    /// Returns the `_meta` object with only the identity.
    pub(crate) fn as_meta(&self) -> &str {
        &self.meta
    }

    /// Returns the members of `_meta` with this identity in place of the server's.
    fn merged_into(&self, meta: Option<&str>) -> Result<Cow<'_, str>, RpcError> {
        let Some(meta) = meta else {
            return Ok(Cow::Borrowed(&*self.meta));
        };
        let meta = RawObject::parse(meta)?;
        let set = [(keys::SERVER_INFO, &*self.info)];
        Ok(edit_object(&meta, &[keys::SUBSCRIPTION_ID], &set).into())
    }
}

/// Converts the result of a request for the client.
pub(crate) fn result(
    method: &str,
    result: &str,
    pair: RevisionPair,
    identity: &ResultIdentity,
) -> Result<String, RpcError> {
    if pair.adds_result_members() {
        return with_result_members(method, result, identity);
    }
    if pair.are_both_modern() {
        return with_identity(result, identity);
    }
    if !pair.needs_downgrade() {
        return Ok(result.to_owned());
    }
    let RevisionPair {
        downstream,
        upstream,
    } = pair;
    let result = match method {
        "tools/call" => downgrade::<CallToolResult>(result, upstream, downstream)?,
        "prompts/get" => downgrade::<GetPromptResult>(result, upstream, downstream)?,
        "resources/read" => downgrade::<ReadResourceResult>(result, upstream, downstream)?,
        "completion/complete" => downgrade::<CompleteResult>(result, upstream, downstream)?,
        _ => result.to_owned(),
    };
    if is_stateless(upstream) {
        // The types of results lack these members, so that the conversion keeps them.
        return edit(&result, &MODERN_MEMBERS, &[]);
    }
    Ok(result)
}

/// Adds the members that every modern result has to a legacy result.
fn with_result_members(
    method: &str,
    result: &str,
    identity: &ResultIdentity,
) -> Result<String, RpcError> {
    let object = RawObject::parse(result)?;
    let mut out = ObjectWriter::with_capacity(result.len() + identity.meta.len() + 64);
    for member in object.members() {
        if member.0 != "_meta" && !MODERN_MEMBERS.contains(&&*member.0) {
            out.copy(member);
        }
    }
    out.string("resultType", "complete");
    if has_cache_hint(method) {
        out.member("ttlMs", "0");
        out.string("cacheScope", "private");
    }
    out.member("_meta", &identity.merged_into(object.get("_meta"))?);
    Ok(out.finish())
}

fn has_cache_hint(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "resources/read" | "skills/get")
}

/// Replaces the identity of the server in a modern result.
fn with_identity(result: &str, identity: &ResultIdentity) -> Result<String, RpcError> {
    let object = RawObject::parse(result)?;
    let meta = identity.merged_into(object.get("_meta"))?;
    Ok(edit_object(&object, &[], &[("_meta", &*meta)]))
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
    pub(crate) fn fetches_all_pages(self) -> bool {
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

/// Converts the parameters of a client request, and puts a span of the gateway into its trace context.
pub(crate) fn client_request_params(
    method: &str,
    params: &str,
    from: Revision,
    to: Revision,
) -> Result<String, RpcError> {
    let params = &*trace::with_child_span(params)?;
    if from <= to {
        return Ok(params.to_owned());
    }
    match method {
        "elicitation/create" => downgrade::<ElicitParams>(params, from, to),
        "sampling/createMessage" => downgrade_message::<CreateMessageParams>(params, from, to),
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
        "sampling/createMessage" => downgrade_message::<CreateMessageResult>(result, from, to),
        "roots/list" => downgrade::<ListRootsResult>(result, from, to),
        _ => Ok(result.to_owned()),
    }
}

/// Converts a payload to an older revision. Without changes its text is returned as it is.
fn downgrade<T>(text: &str, from: Revision, to: Revision) -> Result<String, RpcError>
where
    T: VersionedPayload + Serialize + DeserializeOwned,
{
    let forms = ConvertedPayload::parse::<T>(text, from, to)?;
    if forms.received == forms.converted {
        return Ok(text.to_owned());
    }
    Ok(forms.apply_to(text))
}

/// Like [`downgrade`], for messages with one block or an array of blocks as content. Older revisions lack arrays, also of
/// one block.
fn downgrade_message<T>(text: &str, from: Revision, to: Revision) -> Result<String, RpcError>
where
    T: VersionedPayload + Serialize + DeserializeOwned,
{
    Ok(ConvertedPayload::parse::<T>(text, from, to)?.apply_to(text))
}

/// The members of a payload that its type knows, as JSON, before and after the conversion.
struct ConvertedPayload {
    received: String,
    converted: String,
}

impl ConvertedPayload {
    fn parse<T>(text: &str, from: Revision, to: Revision) -> Result<Self, RpcError>
    where
        T: VersionedPayload + Serialize + DeserializeOwned,
    {
        let to_json =
            |value: &T| serde_json::to_string(value).expect("our own types have string keys");
        let mut value: T = json::from_str(text).map_err(RpcError::from)?;
        let received = to_json(&value);
        value.upgrade_from(from);
        value.downgrade_to(to);
        Ok(Self {
            received,
            converted: to_json(&value),
        })
    }

    /// Applies the changes of the conversion to the text of the payload.
    fn apply_to(&self, text: &str) -> String {
        let read = |json: &str| -> Value {
            json::from_str(json).expect("a value that was just written is valid")
        };
        let (received, converted) = (read(&self.received), read(&self.converted));
        apply_changes(text, &received, &converted).into_owned()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(downstream: Revision) -> RevisionPair {
        RevisionPair {
            downstream,
            upstream: Revision::MODERN,
        }
    }

    fn call_result(text: &str, downstream: Revision) -> String {
        let identity = ResultIdentity::new(&Implementation::new("gateway", "1"));
        result("tools/call", text, pair(downstream), &identity).unwrap()
    }

    #[test]
    fn a_result_keeps_unknown_members_and_numbers_at_every_level() {
        let received = concat!(
            r#"{"resultType":"complete","content":[{"type":"text","text":"hi","x":1.0},"#,
            r#"{"type":"resource","y":[1e3 ],"resource":{"uri":"a:b","text":"t","z":{"deep": 1.50}}}],"#,
            r#""structuredContent":{"n":1.0,"m":1e3,"big":123456789012345678901234567890},"#,
            r#""next":{"a" : 1}}"#
        );
        let expected = received.replace(r#""resultType":"complete","#, "");
        assert_eq!(call_result(received, Revision::V2025_11_25), expected);

        // Members that the revision lacks are removed, and nothing else.
        let older = call_result(received, Revision::V2025_03_26);
        let structured =
            r#""structuredContent":{"n":1.0,"m":1e3,"big":123456789012345678901234567890},"#;
        assert_eq!(older, expected.replace(structured, ""));
    }

    #[test]
    fn what_a_revision_lacks_is_removed_and_unknown_members_stay() {
        let received = concat!(
            r#"{"content":[{"type":"com.example/map","at":[1.0]},{"type":"text","text":"t","k": 2.0}],"#,
            r#""structuredContent":[1.0],"isError":null,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"com.example/a": 1e2},"u":[]}"#
        );
        let converted = call_result(received, Revision::V2025_11_25);
        assert!(!converted.contains("structuredContent"), "{converted}");
        assert!(!converted.contains("serverInfo"), "{converted}");
        assert!(converted.contains(r#""com.example/a":1e2"#), "{converted}");
        assert!(
            converted.contains(r#"{"type":"text","text":"t","k": 2.0}"#),
            "{converted}"
        );
        assert!(converted.contains(r#"com.example/map"#), "{converted}");
        assert!(converted.ends_with(r#","u":[]}"#), "{converted}");
    }

    #[test]
    fn a_tool_keeps_unknown_members_and_its_schema() {
        let received = concat!(
            r#"{"name":"t","title":"T","x":{"a":1.0},"icons":[{"src":"a:b","y":1}],"annotations":{"readOnlyHint":true,"z": 1e1},"#,
            r#""inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1.0,"x-unit": "m"},"any":true}}}"#
        );
        let expected = received.replace(r#""any":true"#, r#""any":{}"#);
        let converted = ListKind::Tools.item(received, pair(Revision::V2025_11_25));
        assert_eq!(converted.unwrap(), expected);

        let expected = expected.replace(r#""icons":[{"src":"a:b","y":1}],"#, "");
        let converted = ListKind::Tools.item(received, pair(Revision::V2025_06_18));
        assert_eq!(converted.unwrap(), expected);
    }

    #[test]
    fn a_form_keeps_unknown_members_of_its_fields() {
        let received = concat!(
            r#"{"mode":"form","message":"?","hint":{"a": 1},"requestedSchema":{"type":"object","x-order":[1.0],"properties":{"#,
            r#""n":{"type":"number","minimum":1.0,"default":2.0,"x-unit":"m"}}}}"#
        );
        let convert = |to| {
            client_request_params("elicitation/create", received, Revision::MODERN, to).unwrap()
        };
        assert_eq!(convert(Revision::V2025_11_25), received);
        let expected = received.replace(r#""default":2.0,"#, "");
        let older = convert(Revision::V2025_06_18);
        assert!(
            older == expected || older == expected.replace(r#""mode":"form","#, ""),
            "{older}"
        );
    }

    #[test]
    fn one_block_in_an_array_is_one_block_for_older_clients() {
        let received = r#"{"maxTokens":1e1,"x":1.0,"messages":[{"role":"user","content":[{"type":"text","text":"a","y":1.0}]}]}"#;
        let converted = client_request_params(
            "sampling/createMessage",
            received,
            Revision::MODERN,
            Revision::V2025_06_18,
        );
        let expected = r#"{"maxTokens":1e1,"x":1.0,"messages":[{"role":"user","content":{"type":"text","text":"a","y":1.0}}]}"#;
        assert_eq!(converted.unwrap(), expected);
    }

    #[test]
    fn messages_that_are_split_keep_the_members_of_others() {
        let received = r#"{"maxTokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","z":1.0,"content":{"type":"text","text":"c"}}]}"#;
        let converted = client_request_params(
            "sampling/createMessage",
            received,
            Revision::MODERN,
            Revision::V2025_06_18,
        );
        let expected = r#"{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"b"}},{"role":"user","z":1.0,"content":{"type":"text","text":"c"}}]}"#;
        assert_eq!(converted.unwrap(), expected);
    }

    #[test]
    fn the_response_to_a_form_keeps_unknown_members() {
        let received = r#"{"action":"accept","content":{"n":1.0,"list":["a"]},"x":{"y": 1e3}}"#;
        let convert = |to| {
            client_request_result("elicitation/create", received, Revision::MODERN, to).unwrap()
        };
        assert_eq!(convert(Revision::V2025_11_25), received);
        let expected = received.replace(r#","list":["a"]"#, "");
        assert_eq!(convert(Revision::V2025_06_18), expected);
    }
}
