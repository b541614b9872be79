//! Caching mutants.

use turnbuckle_server::{Context, Server, Tool};

use crate::{good, mutant::Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new("caching.same-scope", "a public last page").map_response_to(
            "tools/list",
            |message| {
                let last = message["result"].get("nextCursor").is_none();
                if last && message["result"]["cacheScope"].is_string() {
                    let scope = if message["result"]["cacheScope"] == "public" {
                        "private"
                    } else {
                        "public"
                    };
                    message["result"]["cacheScope"] = scope.into();
                }
            },
        ),
        Mutant::new(
            "caching.not-of-questions",
            "a cacheable `input_required` result",
        )
        .server(requests_input)
        .map_sent(|outgoing| {
            if outgoing.message["result"]["resultType"] == "input_required" {
                outgoing.message["result"]["ttlMs"] = 0.into();
            }
        }),
    ]
}

/// Returns a server with a tool that sends an input request.
fn requests_input() -> Server {
    let roots = async |cx: Context| {
        let roots = cx.roots("roots").await?;
        Ok(format!("There are {} roots.", roots.len()))
    };
    let tool = Tool::new("roots", roots).description("Counts the roots");
    good::server().tool(tool.read_only())
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
