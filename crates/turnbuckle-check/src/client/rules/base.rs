//! Messages of JSON-RPC.

use crate::client::take::{Takes, every};
use crate::outcome::Outcome;
use crate::rule::{Area, Rule};

pub(crate) const RULES: &[Rule] = &[Rule::client(
    "client.base.json-rpc",
    Area::Base,
    &["base.jsonrpc.version-field"],
)
.says("Every message has the member `jsonrpc` with the value \"2.0\".")
.cure("Write `\"jsonrpc\": \"2.0\"` into every message.")
.watch(&[], version)];

fn version(takes: &Takes) -> Outcome {
    every(takes.said(), "the client said nothing", |said| {
        let version = &said.message["jsonrpc"];
        (version != "2.0").then(|| format!("`jsonrpc` is {version}"))
    })
}
