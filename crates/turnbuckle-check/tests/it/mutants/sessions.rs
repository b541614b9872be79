//! HTTP session mutants.

use std::sync::{Arc, Mutex};

use http::{HeaderValue, StatusCode};
use turnbuckle_protocol::revision::Revision;

use super::http::set;
use crate::mutant::Mutant;

const ID: &str = "mcp-session-id";

pub(super) fn mutants() -> Vec<Mutant> {
    vec![
        renamed(
            Mutant::new("sessions.id-visible", "an id with a space in it"),
            |_, id| format!("the session {id}"),
        ),
        renamed(
            Mutant::new("sessions.id-unpredictable", "sequential ids")
                .for_requirement("security.session.random"),
            |number, _| format!("session-{number}"),
        ),
        Mutant::new("sessions.missing-400", "404 without an id").response(
            |request, outgoing_response| {
                let missing = !request.headers.contains_key(ID);
                if missing && outgoing_response.head.status == 400 {
                    outgoing_response.head.status = StatusCode::NOT_FOUND;
                }
            },
        ),
        Mutant::new("sessions.ended-404", "400 for a session that has ended").response(
            |request, outgoing_response| {
                if request.headers.contains_key(ID) && outgoing_response.head.status == 404 {
                    outgoing_response.head.status = StatusCode::BAD_REQUEST;
                }
            },
        ),
        Mutant::new("sessions.delete", "501 for DELETE")
            .in_revision(Revision::V2025_11_25)
            .response(|request, outgoing_response| {
                if request.method == "DELETE" {
                    outgoing_response.head.status = StatusCode::NOT_IMPLEMENTED;
                }
            }),
    ]
}

/// Replaces the server's session ids.
fn renamed(mutant: Mutant, name: fn(usize, &str) -> String) -> Mutant {
    let given: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let known = given.clone();
    mutant
        .request(move |request| {
            let sent = request.headers().get(ID);
            let sent = sent.map(|id| id.to_str().unwrap().to_owned());
            let known = known.lock().unwrap();
            let real = known.iter().find(|(ours, _)| Some(ours) == sent.as_ref());
            if let Some((_, real)) = real {
                set(request, ID, real);
            }
        })
        .response(move |_, outgoing_response| {
            if let Some(id) = outgoing_response.head.headers.get_mut(ID) {
                let real = id.to_str().unwrap().to_owned();
                let mut given = given.lock().unwrap();
                let ours = name(given.len(), &real);
                *id = HeaderValue::from_str(&ours).unwrap();
                given.push((ours, real));
            }
        })
}

#[tokio::test(start_paused = true)]
async fn each_mutant_fails_its_rule() {
    super::assert_each_fails_its_rule(mutants()).await;
}
