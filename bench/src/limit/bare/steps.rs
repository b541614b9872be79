//! The limit of a call that reports progress three times: four messages, written one after the other into one buffer.

use std::io::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A call of `steps` that needs a response.
pub(crate) struct Steps<'a> {
    id: &'a RawValue,
    token: &'a RawValue,
    modern: bool,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a RawValue>,
}

impl<'a> Steps<'a> {
    /// Reads `_meta`.
    pub(crate) fn parse(id: &'a RawValue, meta: &'a str) -> Option<Steps<'a>> {
        let Meta { token, version } = serde_json::from_str(meta).ok()?;
        Some(Steps {
            id,
            token,
            modern: version.is_some(),
        })
    }

    /// Writes all messages, each between `before` and `after`.
    pub(crate) fn write(&self, before: &str, after: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        let (id, token) = (self.id.get(), self.token.get());
        for step in 1..=3 {
            let _ = write!(
                out,
                r#"{before}{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"total":3}}}}{after}"#
            );
        }
        let rest = if self.modern { MODERN } else { "" };
        let _ = write!(
            out,
            r#"{before}{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"done"}}]{rest}}}}}{after}"#
        );
        out
    }
}

const MODERN: &str = r#","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"0.1.0"}}"#;
