//! URIs inside results: where clients know a resource under another URI than its server, results have that one.

use std::borrow::Cow;

use serde_json::value::RawValue;
use turnbuckle_protocol::{RpcError, jsonrpc::RawObject};

use crate::{
    convert::ListKind,
    gateway::GatewayState,
    raw_json::{edit, quote},
    upstream::UpstreamServer,
};

impl GatewayState {
    /// Replaces the URIs of resources in a result of a server.
    pub(crate) fn with_shown_uris<'r>(
        &self,
        server: &UpstreamServer,
        method: &str,
        result: &'r str,
    ) -> Cow<'r, str> {
        if !self.catalog.has_renamed_uris() || !result.contains("\"uri\"") {
            return Cow::Borrowed(result);
        }
        let map = |uri: &str| self.shown_uri(ListKind::Resources, server, uri);
        match with_uris(method, result, &map) {
            Ok(Some(mapped)) => Cow::Owned(mapped),
            Ok(None) => Cow::Borrowed(result),
            Err(error) => {
                tracing::debug!(server = server.name(), error = %error.message, "URIs stay");
                Cow::Borrowed(result)
            }
        }
    }
}

type MapUri<'a> = &'a dyn Fn(&str) -> String;

/// Replaces the URIs of an entry; `None` if none differs.
type MapEntry = fn(&str, MapUri<'_>) -> Result<Option<String>, RpcError>;

/// Returns the result with other URIs, or `None` if none differs.
fn with_uris(method: &str, result: &str, map: MapUri<'_>) -> Result<Option<String>, RpcError> {
    let (member, map_entry): (_, MapEntry) = match method {
        "tools/call" => ("content", content_block),
        "prompts/get" => ("messages", prompt_message),
        "resources/read" => ("contents", with_uri),
        "resources/directory/read" => ("resources", with_uri),
        _ => return Ok(None),
    };
    replace_member(result, member, |list| entries(list, map, map_entry))
}

/// A resource link, or an embedded resource.
fn content_block(block: &str, map: MapUri<'_>) -> Result<Option<String>, RpcError> {
    match RawObject::parse(block)?.string("type")?.as_deref() {
        Some("resource_link") => with_uri(block, map),
        Some("resource") => replace_member(block, "resource", |resource| with_uri(resource, map)),
        _ => Ok(None),
    }
}

fn prompt_message(message: &str, map: MapUri<'_>) -> Result<Option<String>, RpcError> {
    replace_member(message, "content", |content| {
        if content.starts_with('[') {
            entries(content, map, content_block)
        } else {
            content_block(content, map)
        }
    })
}

fn with_uri(object: &str, map: MapUri<'_>) -> Result<Option<String>, RpcError> {
    let Some(uri) = RawObject::parse(object)?.string("uri")?.map(String::from) else {
        return Ok(None);
    };
    let mapped = map(&uri);
    if mapped == uri {
        return Ok(None);
    }
    edit(object, &[], &[("uri", quote(&mapped))]).map(Some)
}

/// Replaces the entries of an array.
fn entries(
    list: &str,
    map: MapUri<'_>,
    map_entry: impl Fn(&str, MapUri<'_>) -> Result<Option<String>, RpcError>,
) -> Result<Option<String>, RpcError> {
    let list: Vec<&RawValue> = turnbuckle_protocol::json::from_str(list).map_err(RpcError::from)?;
    let (mut out, mut is_changed) = (String::from("["), false);
    for entry in list {
        if out.len() > 1 {
            out.push(',');
        }
        match map_entry(entry.get(), map)? {
            Some(mapped) => {
                is_changed = true;
                out.push_str(&mapped);
            }
            None => out.push_str(entry.get()),
        }
    }
    out.push(']');
    Ok(is_changed.then_some(out))
}

fn replace_member(
    object: &str,
    member: &str,
    replace: impl FnOnce(&str) -> Result<Option<String>, RpcError>,
) -> Result<Option<String>, RpcError> {
    let Some(value) = RawObject::parse(object)?.get(member).map(str::to_owned) else {
        return Ok(None);
    };
    match replace(&value)? {
        Some(replaced) => edit(object, &[], &[(member, replaced)]).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(uri: &str) -> String {
        uri.replace("x:", "y:")
    }

    #[test]
    fn links_and_embedded_resources_are_replaced_and_nothing_else() {
        let result = r#"{"content":[{"type":"text","text":"\"uri\":\"x:1\"","uri":"x:1"},{"type":"resource_link","uri":"x:1", "n": 1.0},{"type":"resource","resource":{"uri":"x:2","text":"x:2"}}],"structuredContent":{"uri":"x:1"}}"#;
        let expected = r#"{"content":[{"type":"text","text":"\"uri\":\"x:1\"","uri":"x:1"},{"type":"resource_link","uri":"y:1","n":1.0},{"type":"resource","resource":{"uri":"y:2","text":"x:2"}}],"structuredContent":{"uri":"x:1"}}"#;
        let mapped = with_uris("tools/call", result, &map).unwrap();
        assert_eq!(mapped.unwrap(), expected);
    }

    #[test]
    fn prompts_and_contents_are_replaced() {
        let prompt = r#"{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"x:1"}}}]}"#;
        let mapped = with_uris("prompts/get", prompt, &map).unwrap().unwrap();
        assert_eq!(mapped, prompt.replace("x:", "y:"));
        let read = r#"{"contents":[{"uri":"x:1","text":""}]}"#;
        let mapped = with_uris("resources/read", read, &map).unwrap().unwrap();
        assert_eq!(mapped, read.replace("x:", "y:"));
    }

    #[test]
    fn malformed_results_are_errors_and_no_panics() {
        for result in [
            r#"{"content":7}"#,
            r#"{"content":[7]}"#,
            r#"{"content":[{"type":"resource","resource":[]}]}"#,
            r#"{"content":[{"type":"resource_link","uri":7}]}"#,
        ] {
            assert!(with_uris("tools/call", result, &map).is_err(), "{result}");
        }
        assert_eq!(with_uris("tools/call", "{}", &map).unwrap(), None);
    }
}
