//! Writing a result: envelope, payload and what every result of the peer's revision carries, into one buffer.

use std::io::Write;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use turnbuckle_protocol::{
    Meta, RequestId,
    revision::Versioned,
    types::{CacheScope, JsonObject},
};

use crate::{
    Server,
    context::Call,
    lifecycle::Rules,
    written::{Around, Written},
};

/// For how long and by whom an answer may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheHint {
    pub(crate) ttl_ms: u64,
    pub(crate) scope: CacheScope,
}

impl CacheHint {
    /// Nobody should keep the answer.
    pub const NONE: Self = Self {
        ttl_ms: 0,
        scope: CacheScope::Private,
    };

    /// Only the one who asked may keep the answer, for as long as given.
    pub fn private(ttl: std::time::Duration) -> Self {
        Self {
            ttl_ms: millis(ttl),
            scope: CacheScope::Private,
        }
    }

    /// Everyone may share the answer, for as long as given: it is the same for all.
    pub fn public(ttl: std::time::Duration) -> Self {
        Self {
            ttl_ms: millis(ttl),
            scope: CacheScope::Public,
        }
    }

    /// The same time, for the one who asked only.
    pub(crate) fn for_one(self) -> Self {
        Self {
            scope: CacheScope::Private,
            ..self
        }
    }
}

impl CacheHint {
    fn scope_name(self) -> &'static str {
        match self.scope {
            CacheScope::Public => "public",
            CacheScope::Private => "private",
        }
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The result inside of a response that [`Reply`] wrote for this call.
pub(crate) fn result_of(call: &Call, response: &Bytes) -> Bytes {
    let before = START.len() + call.id.raw().len() + RESULT.len();
    response.slice(before..response.len() - 1)
}

/// From how many bytes on a payload is not copied: below, one piece costs less than three.
const LONG: usize = 4 * 1024;

const START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
const RESULT: &[u8] = br#","result":"#;

/// A result being written.
pub(crate) struct Reply {
    out: Vec<u8>,
    rules: &'static Rules,
    server: Server,
}

impl Reply {
    /// Begins the answer to a call.
    pub(crate) fn new(call: &Call) -> Self {
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(START);
        call.id.write(&mut out);
        out.extend_from_slice(RESULT);
        Self {
            out,
            rules: call.caller.rules,
            server: call.server.clone(),
        }
    }

    /// A payload without `_meta` of its own.
    pub(crate) fn object<T: Versioned + Serialize>(
        mut self,
        value: &mut T,
        cache: Option<CacheHint>,
    ) -> Written {
        self.rules.write(value, &mut self.out);
        self.finish(cache, true)
    }

    /// A payload that may have `_meta`; `meta` finds it.
    pub(crate) fn with_meta<T: Versioned + Serialize>(
        mut self,
        value: &mut T,
        meta: impl FnOnce(&mut T) -> &mut Meta,
        cache: Option<CacheHint>,
    ) -> Written {
        let meta = meta(value);
        let bare = meta.is_empty();
        if !bare && self.rules.stamps {
            meta.set_server_info(self.server.info());
        }
        self.rules.write(value, &mut self.out);
        self.finish(cache, bare)
    }

    /// A payload that is already written, without its closing brace.
    pub(crate) fn written(mut self, unclosed: &[u8], cache: Option<CacheHint>) -> Written {
        self.out.extend_from_slice(unclosed);
        self.out.push(b'}');
        self.finish(cache, true)
    }

    /// A payload like [`written`](Self::written) that others are answered with too.
    pub(crate) fn shared(mut self, unclosed: Bytes, cache: Option<CacheHint>) -> Written {
        if unclosed.len() < LONG {
            return self.written(&unclosed, cache);
        }
        let after = Vec::with_capacity(self.server.identity().len() + 128);
        let before = std::mem::replace(&mut self.out, after);
        self.close(false, cache, true);
        Written::Around(Box::new(Around {
            before,
            shared: unclosed,
            after: self.out,
        }))
    }

    /// A payload of an extension, which may say some of what is added itself.
    pub(crate) fn open(mut self, mut object: JsonObject, cache: Option<CacheHint>) -> Written {
        if self.rules.stamps {
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

    /// A result that says nothing.
    pub(crate) fn empty(self) -> Written {
        self.written(b"{", None)
    }

    /// The end of a subscription, with the id it had.
    pub(crate) fn subscription_end(mut self, id: &RequestId) -> Written {
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

    /// The end of a round: open questions as a JSON object, and the sealed state.
    pub(crate) fn input_required(mut self, questions: &[u8], state: &str) -> Written {
        self.out
            .extend_from_slice(br#"{"resultType":"input_required","inputRequests":"#);
        self.out.extend_from_slice(questions);
        self.out.extend_from_slice(br#","requestState":""#);
        self.out.extend_from_slice(state.as_bytes());
        self.out.extend_from_slice(br#"","_meta":"#);
        self.out.extend_from_slice(self.server.identity());
        self.out.extend_from_slice(b"}}");
        self.out.into()
    }

    /// A call that became a task, without the closing brace.
    pub(crate) fn task(mut self, unclosed: &[u8]) -> Written {
        self.out.extend_from_slice(unclosed);
        self.out
            .extend_from_slice(br#","resultType":"task","_meta":"#);
        self.out.extend_from_slice(self.server.identity());
        self.out.extend_from_slice(b"}}");
        self.out.into()
    }

    /// Adds what the revision wants on every result to the payload, then closes the envelope.
    fn finish(mut self, cache: Option<CacheHint>, add_meta: bool) -> Written {
        self.out.pop();
        let is_empty = self.out.last() == Some(&b'{');
        self.close(is_empty, cache, add_meta);
        self.out.into()
    }

    /// What follows a payload without its closing brace.
    fn close(&mut self, is_empty: bool, cache: Option<CacheHint>, add_meta: bool) {
        if self.rules.stamps {
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
        .expect("memory takes everything");
    }
}
