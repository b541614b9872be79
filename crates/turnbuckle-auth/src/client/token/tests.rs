use turnbuckle_ledger::req;

use super::*;
use crate::{
    Challenge,
    client::{
        authorization::AuthorizationRequest,
        discovery::discover,
        registration::{ClientDescription, register},
        testing::{SERVER, Web, parameter},
    },
};

const CALLBACK: &str = "http://127.0.0.1:9999/callback";

#[tokio::test]
async fn from_a_refusal_to_tokens() {
    req!("auth.resource.both-requests");
    let web = Web::usual();
    let challenges = [Challenge::bearer()];

    let found = discover(&web, SERVER, &challenges, "2026-07-28")
        .await
        .unwrap();
    let description = ClientDescription::new("Test", [CALLBACK]);
    let client = register(&web, &found.server, &description).await.unwrap();
    let login = AuthorizationRequest::new(
        &found.server,
        &client,
        CALLBACK,
        &found.resource,
        None,
        None,
    )
    .unwrap();
    let state = parameter(login.url(), "state").unwrap();
    let back = format!("{CALLBACK}?code=the-code&state={state}&iss=https%3A%2F%2Fas.example");
    let code = login.answer(&back).unwrap();
    let endpoint = Endpoint::new(&found.server, &client);
    let tokens = exchange_code(&web, &endpoint, &code, None).await.unwrap();

    assert_eq!(tokens.access.expose(), "access");
    assert_eq!(parameter(login.url(), "resource").as_deref(), Some(SERVER));
    let asked = web.posted("https://as.example/token");
    assert_eq!(asked.field("resource").as_deref(), Some(SERVER));
}
