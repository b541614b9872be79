//! Messages of JSON-RPC.

use serde_json::json;

use crate::outcome::Outcome;
use crate::rule::{Area, Rule};
use crate::visit::Visit;

pub(crate) const RULES: &[Rule] = &[Rule::server(
    "base.unknown-method",
    Area::Base,
    &["base.error.method-not-found"],
)
.says("A request for a method that is not there is answered with the error -32601.")
.cure("Answer with the error -32601 when no handler has the name of the method.")
.ask(|visit| Box::pin(unknown_method(visit)))];

async fn unknown_method(visit: &Visit) -> Outcome {
    let session = visit.session().await?;
    let answer = session.ask("turnbuckle/no-such-method", json!({})).await?;
    answer.expect_error(&[-32601])
}
