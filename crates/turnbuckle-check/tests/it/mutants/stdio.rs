//! Lines that are not quite right.

use serde_json::json;

use super::base::asked;
use crate::mutant::{Mutant, NO_UTF8};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("stdio.only-messages", "a log on standard output")
            .on_lines()
            .says(|saying| {
                if asked(saying, "tools/list") {
                    saying.text = Some(format!("Listing tools...\n{}", saying.message));
                }
            }),
        Mutant::new("stdio.one-line", "a message in several lines")
            .on_lines()
            .says(|saying| {
                if asked(saying, "tools/list") {
                    let method = "notifications/tools/list_changed";
                    let notification = json!({ "jsonrpc": "2.0", "method": method });
                    saying.text = Some(format!("{notification:#}\n{}", saying.message));
                }
            }),
        Mutant::new("stdio.utf8", "a description in Latin-1")
            .on_lines()
            .says(|saying| {
                if asked(saying, "tools/list") {
                    let tools = saying.message.to_string();
                    saying.text = Some(tools.replace("Adds two", &format!("Adds {NO_UTF8}wei")));
                }
            }),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_trips_its_rule() {
    super::assert_each_trips_its_rule(mutants()).await;
}
