//! Responses: writes results, and holds them in their encoded form.

use std::io::Write;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use turnbuckle_protocol::{
    Meta, RequestId, RpcError, revision::VersionedPayload, types::JsonObject,
};

use crate::{
    CacheHint, Server,
    lifecycle::RevisionRules,
    request::{FinalResponse, RequestContext},
    server::relay::RelayedResult,
};

/// Returns the result from a response that [`ResponseWriter`] wrote for this call.
pub(crate) fn extract_result(call: &RequestContext, response: &Bytes) -> Bytes {
    let prefix = RESPONSE_START.len() + call.id.raw().len() + RESULT_MEMBER.len();
    response.slice(prefix..response.len() - 1)
}

/// Minimum size of a payload that is shared instead of copied: below, one chunk is cheaper than three.
const MIN_SHARED_BYTES: usize = 4 * 1024;

const RESPONSE_START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const RESULT_MEMBER: &[u8] = br#","result":"#;

/// Writes the result of one request.
pub(crate) struct ResponseWriter {
    out: Vec<u8>,
    rules: &'static RevisionRules,
    server: Server,
}

impl ResponseWriter {
    /// Starts the response to a request.
    pub(crate) fn new(call: &RequestContext) -> Self {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(RESPONSE_START);
        call.id.write(&mut out);
        out.extend_from_slice(RESULT_MEMBER);
        Self {
            out,
            rules: call.origin.rules,
            server: call.server.clone(),
        }
    }

    /// Writes a payload without `_meta`.
    pub(crate) fn object<T: VersionedPayload + Serialize>(
        mut self,
        value: &mut T,
        cache: Option<CacheHint>,
    ) -> EncodedResponse {
        self.rules.write(value, &mut self.out);
        self.finish(cache, true)
    }

    /// Writes a payload with optional `_meta`, which `meta` returns.
    pub(crate) fn with_meta<T: VersionedPayload + Serialize>(
        mut self,
        value: &mut T,
        meta: impl FnOnce(&mut T) -> &mut Meta,
        cache: Option<CacheHint>,
    ) -> EncodedResponse {
        let meta = meta(value);
        let has_no_meta = meta.is_empty();
        if !has_no_meta && self.rules.adds_result_metadata {
            meta.set_server_info(self.server.info());
        }
        self.rules.write(value, &mut self.out);
        self.finish(cache, has_no_meta)
    }

    /// Writes an encoded object that lacks its closing brace.
    pub(crate) fn unclosed_object(
        mut self,
        unclosed: &[u8],
        cache: Option<CacheHint>,
    ) -> EncodedResponse {
        self.out.extend_from_slice(unclosed);
        self.out.push(b'}');
        self.finish(cache, true)
    }

    /// Like [`unclosed_object`](Self::unclosed_object), for a payload that several responses share.
    pub(crate) fn shared_object(
        mut self,
        unclosed: Bytes,
        cache: Option<CacheHint>,
    ) -> EncodedResponse {
        if unclosed.len() < MIN_SHARED_BYTES {
            return self.unclosed_object(&unclosed, cache);
        }
        let suffix = Vec::with_capacity(self.server.identity().len() + 128);
        let prefix = std::mem::replace(&mut self.out, suffix);
        self.close(false, cache, true);
        EncodedResponse::Split(Box::new(SplitBody {
            prefix,
            shared: unclosed,
            suffix: self.out,
        }))
    }

    /// Writes the result of an extension, which may already contain some of the added members.
    pub(crate) fn extension_result(
        mut self,
        mut object: JsonObject,
        cache: Option<CacheHint>,
    ) -> EncodedResponse {
        if self.rules.adds_result_metadata {
            let mut add = |name: &str, value: Value| {
                object.entry(name).or_insert(value);
            };
            add("resultType", "complete".into());
            if let Some(hint) = cache {
                add("ttlMs", hint.ttl_ms.into());
                add("cacheScope", hint.scope_name().into());
            }
            let identity = serde_json::from_slice(self.server.identity()).unwrap_or_default();
            match object.get_mut("_meta") {
                Some(Value::Object(meta)) => meta.extend::<JsonObject>(identity),
                _ => {
                    object.insert("_meta".to_owned(), Value::Object(identity));
                }
            }
        }
        self.out
            .extend_from_slice(Value::Object(object).to_string().as_bytes());
        self.out.push(b'}');
        self.out.into()
    }

    /// Writes the result of a relay as it is.
    pub(crate) fn relayed_result(mut self, result: RelayedResult) -> EncodedResponse {
        let RelayedResult { head, tail } = result;
        if head.len() < MIN_SHARED_BYTES {
            self.out.extend_from_slice(&head);
            self.out.extend_from_slice(tail.as_bytes());
            self.out.push(b'}');
            return self.out.into();
        }
        let mut suffix = tail.into_bytes();
        suffix.push(b'}');
        EncodedResponse::Split(Box::new(SplitBody {
            prefix: self.out,
            shared: head,
            suffix,
        }))
    }

    /// Writes an empty result.
    pub(crate) fn empty(self) -> EncodedResponse {
        self.unclosed_object(b"{", None)
    }

    /// Writes the result that ends a subscription.
    pub(crate) fn subscription_end(mut self, id: &RequestId) -> EncodedResponse {
        self.out
            .extend_from_slice(br#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"#);
        id.write(&mut self.out);
        self.out.push(b',');
        let identity = self.server.identity();
        self.out
            .extend_from_slice(identity.strip_prefix(b"{").unwrap_or(b"}"));
        self.out.push(b'}');
        self.finish(None, false)
    }

    /// Writes an `input_required` result with its input requests and sealed state.
    pub(crate) fn input_required(mut self, input_requests: &[u8], state: &str) -> EncodedResponse {
        self.out
            .extend_from_slice(br#"{"resultType":"input_required","inputRequests":"#);
        self.out.extend_from_slice(input_requests);
        self.out.extend_from_slice(br#","requestState":""#);
        self.out.extend_from_slice(state.as_bytes());
        self.out.extend_from_slice(br#"","_meta":"#);
        self.out.extend_from_slice(self.server.identity());
        self.out.extend_from_slice(b"}}");
        self.out.into()
    }

    /// Writes a created task, from an object without its closing brace.
    pub(crate) fn task(mut self, unclosed: &[u8]) -> EncodedResponse {
        self.out.extend_from_slice(unclosed);
        self.out
            .extend_from_slice(br#","resultType":"task","_meta":"#);
        self.out.extend_from_slice(self.server.identity());
        self.out.extend_from_slice(b"}}");
        self.out.into()
    }

    /// Adds the members that the revision requires in every result, and closes the envelope.
    fn finish(mut self, cache: Option<CacheHint>, add_meta: bool) -> EncodedResponse {
        self.out.pop();
        let is_empty = self.out.last() == Some(&b'{');
        self.close(is_empty, cache, add_meta);
        self.out.into()
    }

    /// Writes the members after an object without its closing brace.
    fn close(&mut self, is_empty: bool, cache: Option<CacheHint>, add_meta: bool) {
        if self.rules.adds_result_metadata {
            if !is_empty {
                self.out.push(b',');
            }
            self.out.extend_from_slice(br#""resultType":"complete""#);
            if let Some(hint) = cache {
                self.cache(hint);
            }
            if add_meta {
                self.out.extend_from_slice(br#","_meta":"#);
                self.out.extend_from_slice(self.server.identity());
            }
        }
        self.out.extend_from_slice(b"}}");
    }

    fn cache(&mut self, hint: CacheHint) {
        let scope = hint.scope_name();
        write!(
            self.out,
            r#","ttlMs":{},"cacheScope":"{scope}""#,
            hint.ttl_ms
        )
        .expect("writing to memory cannot fail");
    }
}

/// A complete JSON-RPC response.
#[derive(Debug)]
pub(crate) enum EncodedResponse {
    /// One buffer.
    Contiguous(Vec<u8>),
    /// A prefix and suffix around a large buffer that several responses share.
    Split(Box<SplitBody>),
}

/// A shared body with its prefix and suffix.
#[derive(Debug)]
pub(crate) struct SplitBody {
    pub(crate) prefix: Vec<u8>,
    pub(crate) shared: Bytes,
    pub(crate) suffix: Vec<u8>,
}

impl EncodedResponse {
    /// The chunks, in order.
    pub(crate) fn pieces(&self) -> [&[u8]; 3] {
        match self {
            Self::Contiguous(all) => [all, b"", b""],
            Self::Split(split) => [&split.prefix, &split.shared, &split.suffix],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces().iter().map(|piece| piece.len()).sum()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::Contiguous(all) => all.into(),
            Self::Split(_) => self.pieces().concat().into(),
        }
    }
}

impl From<Vec<u8>> for EncodedResponse {
    fn from(all: Vec<u8>) -> Self {
        Self::Contiguous(all)
    }
}

/// Maximum total bytes of the responses of a batch.
const MAX_BATCH_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// Returns whether another response exceeds the limit of a batch. A single response is not limited.
pub(crate) fn exceeds_batch_limit(pending_bytes: usize, response_bytes: usize) -> bool {
    pending_bytes > 0 && pending_bytes + response_bytes > MAX_BATCH_RESPONSE_BYTES
}

/// The error that replaces a response above the limit.
pub(crate) fn batch_limit_error(id: &RequestId) -> FinalResponse {
    let error = RpcError::internal(format!(
        "the responses of a batch are limited to {MAX_BATCH_RESPONSE_BYTES} bytes: send this request on its own"
    ));
    FinalResponse::error(Some(id), &error, 200)
}
