//! W3C trace context of relayed requests: a span of the gateway is between the span of the sender and that of the
//! receiver.

use std::borrow::Cow;

use tracing::{Span, field::display};
use turnbuckle_protocol::{
    RpcError,
    jsonrpc::RawObject,
    meta::{TraceContext, keys},
};

use crate::raw_json::{edit, quote};

/// The field of the span of a call with the `traceparent` that its server gets.
pub(crate) const SENT_FIELD: &str = "sent.traceparent";

/// Returns the `traceparent` of a new span below the one of a request, with the same trace and flags. Both are JSON.
///
/// `None` if the value is not a valid `traceparent`: nothing is invented for it, and nothing is changed.
pub(crate) fn child_of(parent: &str) -> Option<String> {
    let parent: String = turnbuckle_protocol::json::from_str(parent).ok()?;
    let context = TraceContext::new(Some(&parent), None, None)?;
    let mut id = [0; 8];
    getrandom::fill(&mut id).ok()?;
    // An id of zeros is invalid.
    let id = u64::from_be_bytes(id).max(1);
    // Later versions are sent as the version that this code knows.
    let (trace, flags) = (context.trace_id()?, parent.get(53..55)?);
    let child = format!("00-{trace}-{id:016x}-{flags}");
    Span::current().record(SENT_FIELD, display(&child));
    Some(quote(&child))
}

/// Puts a span of the gateway into the `_meta` of a client request, below the span of the server.
pub(crate) fn with_child_span(params: &str) -> Result<Cow<'_, str>, RpcError> {
    if !params.contains(keys::TRACEPARENT) {
        return Ok(Cow::Borrowed(params));
    }
    let object = RawObject::parse(params)?;
    let Some(Ok(meta)) = object.get("_meta").map(RawObject::parse) else {
        return Ok(Cow::Borrowed(params));
    };
    let Some(child) = meta.get(keys::TRACEPARENT).and_then(child_of) else {
        return Ok(Cow::Borrowed(params));
    };
    let meta = edit(meta.raw(), &[], &[(keys::TRACEPARENT, child)])?;
    edit(params, &[], &[("_meta", meta)]).map(Cow::Owned)
}

/// Like [`with_child_span`], for all input requests of an `input_required` result.
pub(crate) fn with_child_spans(requests: &str) -> Result<Cow<'_, str>, RpcError> {
    if !requests.contains(keys::TRACEPARENT) {
        return Ok(Cow::Borrowed(requests));
    }
    let object = RawObject::parse(requests)?;
    let mut changed = Vec::new();
    for (key, entry) in object.members() {
        let Some(params) = RawObject::parse(entry)?.get("params") else {
            continue;
        };
        if let Cow::Owned(params) = with_child_span(params)? {
            changed.push((key, edit(entry, &[], &[("params", params)])?));
        }
    }
    let set: Vec<_> = changed
        .iter()
        .map(|(key, entry)| (&**key, entry.clone()))
        .collect();
    edit(requests, &[], &set).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_child_has_the_trace_and_the_flags_of_its_parent() {
        let child = child_of(&quote(PARENT)).unwrap();
        let child = child.trim_matches('"');
        assert!(
            TraceContext::new(Some(child), None, None).is_some(),
            "{child}"
        );
        assert_eq!((&child[..36], &child[52..]), (&PARENT[..36], &PARENT[52..]));
        assert_ne!(child, PARENT);
    }

    #[test]
    fn a_later_version_is_sent_as_the_known_one() {
        let later = PARENT.replacen("00-", "cc-", 1) + "-what-the-future-brings";
        let child = child_of(&quote(&later)).unwrap();
        assert_eq!(child.len(), PARENT.len() + 2);
        assert!(child.starts_with("\"00-"), "{child}");
    }

    #[test]
    fn what_is_not_a_trace_context_stays() {
        assert_eq!(child_of("1"), None);
        assert_eq!(child_of(r#""00-0-0-0""#), None);
        for params in [
            r#"{"traceparent":"x"}"#,
            r#"{"_meta":{"traceparent":5, "a":1.0}}"#,
            r#"{"_meta":["traceparent"]}"#,
        ] {
            assert_eq!(with_child_span(params).unwrap(), params);
        }
    }
}
