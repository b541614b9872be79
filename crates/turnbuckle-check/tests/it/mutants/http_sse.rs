//! HTTP+SSE mutants.

use turnbuckle_protocol::revision::Revision;

use crate::mutant::Mutant;

pub(super) fn mutants() -> Vec<Mutant> {
    let mutants = vec![
        Mutant::new("http-sse.endpoint-first", "another event first")
            .for_requirement("httpsse.endpoint-event")
            .events(|_, events| {
                if events.starts_with("event: endpoint") {
                    events.insert_str(0, "event: hello\ndata: hello\n\n");
                }
            }),
        Mutant::new("http-sse.message-events", "another event type").events(|_, events| {
            if events.starts_with("data: ") {
                events.insert_str(0, "event: mcp\n");
            }
        }),
        Mutant::new(
            "http-sse.stranger-refused", // quoted
            "accepts any origin",
        )
        .request(|request| {
            request.headers_mut().remove("origin");
        }),
    ];
    let spoken = |mutant: Mutant| mutant.on_http_sse().in_revision(Revision::V2024_11_05);
    mutants.into_iter().map(spoken).collect()
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
