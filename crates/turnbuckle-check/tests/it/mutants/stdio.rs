//! stdio mutants.

use super::base::is_response_to;
use crate::mutant::{INVALID_UTF8, Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("stdio.only-messages", "a log on standard output")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/list") {
                    outgoing.text = Some(format!("Listing tools...\n{}", outgoing.message));
                }
            }),
        Mutant::new("stdio.one-line", "a message in several lines")
            .for_requirement("stdio.framing.no-embedded")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/list") {
                    outgoing.text = Some(format!("{:#}", outgoing.message));
                }
            }),
        Mutant::new("stdio.one-line", "every message in several lines")
            .for_requirement("stdio.framing.no-embedded")
            .on_ndjson()
            .map_sent(|outgoing| outgoing.text = Some(format!("{:#}", outgoing.message))),
        Mutant::new("stdio.utf8", "a description in Latin-1")
            .on_ndjson()
            .map_sent(|outgoing| {
                if is_response_to(outgoing, "tools/list") {
                    let tools = outgoing.message.to_string();
                    outgoing.text =
                        Some(tools.replace("Adds two", &format!("Adds {INVALID_UTF8}wei")));
                }
            }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
