//! Servers that odd input harms.

use serde_json::{Map, Value};

use crate::mutant::{Hearing, Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "robustness.odd-json",
            "silent after a name that comes twice",
        )
        .on_lines()
        .hears(|hearing| silent_after(hearing, "a name twice")),
        Mutant::new("robustness.long-text", "silent after a long text")
            .on_lines()
            .hears(|hearing| silent_after(hearing, "a long text")),
        Mutant::new("robustness.odd-names", "no answer for no name")
            .on_lines()
            .hears(|hearing| {
                if hearing.message["params"]["name"] == "" {
                    hearing.message = Value::Null;
                }
            }),
        Mutant::new("robustness.goes-on", "silent after an empty object")
            .on_lines()
            .hears(|hearing| {
                let empty = |message: &Value| message.as_object().is_some_and(Map::is_empty);
                if hearing.earlier.iter().any(empty) {
                    hearing.message = Value::Null;
                }
            }),
        Mutant::new("robustness.stray-response", "answers responses")
            .on_lines()
            .in_revision(turnbuckle_protocol::revision::Revision::V2025_11_25)
            .hears(|hearing| {
                if hearing.message["id"] == "never-asked" {
                    hearing.answer = Some(super::base::error(&Value::Null, -32600));
                }
            }),
    ]
}

/// Hears nothing any more once this id was heard.
fn silent_after(hearing: &mut Hearing, id: &str) {
    if hearing.earlier.iter().any(|message| message["id"] == id) {
        hearing.message = Value::Null;
    }
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
