//! `Origin` and `Host` mutants.

use http::{HeaderValue, Method, StatusCode};

use crate::{good, mutant::Mutant};

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        Mutant::new(
            "origins.stranger-refused", // quoted
            "accepts any origin",
        )
        .request(|request| {
            request.headers_mut().remove("origin");
        }),
        Mutant::new(
            "origins.stranger-403", // quoted
            "400 for an unknown origin",
        )
        .response(|_, outgoing_response| {
            if outgoing_response.head.status == 403 {
                outgoing_response.head.status = StatusCode::BAD_REQUEST;
            }
        }),
        Mutant::new("origins.host-checked", "accepts any name")
            .for_requirement("http.header.body-mismatch")
            .request(|request| {
                let host = good::URL.trim_start_matches("http://");
                super::http::set(request, "host", host.trim_end_matches("/mcp"));
            }),
        Mutant::new("origins.preflight", "allows any origin in a preflight").response(
            |head, outgoing_response| {
                if head.method == Method::OPTIONS {
                    let any = HeaderValue::from_static("*");
                    outgoing_response
                        .head
                        .headers
                        .insert("access-control-allow-origin", any);
                }
            },
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
