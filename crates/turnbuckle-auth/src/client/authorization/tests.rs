use serde_json::{Value, json};
use turnbuckle_spec_coverage::req;

use super::*;
use crate::client::tests::fake_http::{ISSUER, SERVER, metadata, parameter, with};

const CALLBACK: &str = "http://127.0.0.1:9999/callback";

fn server(changes: &Value) -> AuthorizationServer {
    serde_json::from_value(with(metadata(), changes)).unwrap()
}

fn login_at(server: &AuthorizationServer) -> Result<AuthorizationRequest, AuthorizationError> {
    let client = ClientRegistration::preregistered(server, "the client", None);
    AuthorizationRequest::new(server, &client, CALLBACK, SERVER, None, None)
}

fn login() -> AuthorizationRequest {
    login_at(&server(&json!({}))).unwrap()
}

/// What comes back, with the right state.
fn back(login: &AuthorizationRequest, rest: &str) -> String {
    let state = parameter(login.url(), "state").unwrap();
    format!("{CALLBACK}?state={state}&{rest}")
}

#[test]
fn a_login_says_who_asks_for_what_and_how_the_answer_is_tied_to_it() {
    req!("auth.pkce.required");
    req!("auth.pkce.s256");
    req!("auth.resource.implement");
    req!("auth.resource.identify");
    req!("auth.resource.always");
    let server = server(&json!({}));
    let client = ClientRegistration::preregistered(&server, "the client", None);
    let scopes = "b a".parse().unwrap();

    let login = AuthorizationRequest::new(
        &server,
        &client,
        CALLBACK,
        SERVER,
        Some(&scopes),
        Some("jkt"),
    )
    .unwrap();

    let url = login.url();
    assert!(url.starts_with("https://as.example/authorize?"), "{url}");
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "the client"),
        ("redirect_uri", CALLBACK),
        ("resource", SERVER),
        ("scope", "a b"),
        ("code_challenge_method", "S256"),
        ("dpop_jkt", "jkt"),
    ] {
        assert_eq!(parameter(url, name).as_deref(), Some(value), "{name}");
    }
    let code = login
        .parse_response(&back(&login, "code=x&iss=https://as.example"))
        .unwrap();
    let challenge = parameter(url, "code_challenge").unwrap();
    assert_ne!(challenge, code.verifier.expose());
    assert_eq!(code.redirect_uri, CALLBACK);
}

#[test]
fn what_is_not_asked_for_is_not_said() {
    req!("auth.scope.order");
    let login = login();

    for name in ["scope", "dpop_jkt", "prompt"] {
        assert_eq!(parameter(login.url(), name), None, "{name}");
    }
    let server = server(&json!({}));
    let client = ClientRegistration::preregistered(&server, "x", None);
    let nothing = Scopes::default();
    let login = AuthorizationRequest::new(&server, &client, CALLBACK, SERVER, Some(&nothing), None)
        .unwrap();
    assert_eq!(parameter(login.url(), "scope"), None);
}

#[test]
fn each_login_has_secrets_of_its_own_that_cannot_be_guessed_or_seen() {
    let (one, other) = (login(), login());

    for name in ["state", "code_challenge"] {
        let value = parameter(one.url(), name).unwrap();
        assert_ne!(Some(&value), parameter(other.url(), name).as_ref());
        assert!(value.len() >= 22, "128 bits: {value}");
        assert!(!format!("{one:?}").contains(&value));
    }
}

#[test]
fn a_server_without_pkce_is_not_logged_in_at() {
    req!("auth.pkce.verify");
    req!("auth.pkce.refuse");
    for methods in [json!(null), json!([]), json!(["plain"]), json!(["s256"])] {
        let server = server(&json!({ "code_challenge_methods_supported": methods }));

        let failure = login_at(&server).unwrap_err();

        assert_eq!(failure.step(), AuthorizationStep::Authorization);
        assert!(failure.reason().contains("PKCE"), "{failure}");
        assert!(failure.hint().is_some());
    }
}

#[test]
fn no_browser_is_sent_to_a_place_that_is_none() {
    // CVE-2025-6514: what a server names here was handed to a shell.
    for url in [
        "file:///etc/passwd",
        "javascript:alert(document.cookie)",
        "ms-msdt:/id%20PCWDiagnostic",
        "data:text/html,x",
        "vscode://x",
        "http://as.example/authorize",
        "http://x/$(calc)",
        "https://as.example/`calc`",
        "https://as.example/|calc",
        "https://as.example/\" && calc",
        "https://as.example/\u{1b}[2J",
        "https://as.example/\r\nx",
        "https://as.example/\0",
        "https://as.example\\@evil.example",
        "https://as.example@evil.example/authorize",
        "https://-flag/",
        "--flag",
        "-e calc",
        " https://as.example/authorize",
        "https://ás.example/authorize",
        "https:/as.example",
        "//as.example/authorize",
        "",
    ] {
        let server = server(&json!({ "authorization_endpoint": url }));

        let failure = login_at(&server).unwrap_err();

        assert!(
            failure.reason().contains("authorization endpoint"),
            "{failure}"
        );
        assert!(!failure.reason().contains(char::is_control), "{failure}");
    }
    let none = server(&json!({ "authorization_endpoint": null }));
    assert!(login_at(&none).unwrap_err().hint().is_some());
}

#[test]
fn what_a_shell_could_read_is_escaped_in_what_a_browser_gets() {
    let endpoint = "https://as.example/a$(calc);'b'!*/authorize?x=$y";
    let login = login_at(&server(&json!({ "authorization_endpoint": endpoint }))).unwrap();

    let escaped = "https://as.example/a%24%28calc%29%3B%27b%27%21%2A/authorize?x=%24y&";
    assert!(login.url().starts_with(escaped), "{}", login.url());
    assert!(
        !login
            .url()
            .contains(['$', '\'', '(', ')', ';', '`', '"', ' ', '\\'])
    );
}

#[test]
fn an_endpoint_keeps_its_own_query_but_does_not_speak_for_us() {
    let url = |endpoint: &str| {
        let login = login_at(&server(&json!({ "authorization_endpoint": endpoint })));
        login.map(|login| login.url().to_owned())
    };

    let kept = url("https://as.example/authorize?tenant=a%2Fb").unwrap();
    assert!(kept.starts_with("https://as.example/authorize?tenant=a%2Fb&response_type=code&"));
    for (endpoint, begun) in [
        ("https://as.example/a?", "a?response"),
        ("https://as.example/a?x&", "a?x&response"),
    ] {
        assert!(url(endpoint).unwrap().contains(begun));
    }
    for name in [
        "client_id",
        "redirect_uri",
        "state",
        "resource",
        "code_challenge",
        "%73tate",
        "request_uri",
    ] {
        assert!(
            url(&format!("https://as.example/authorize?{name}=evil")).is_err(),
            "{name}"
        );
    }
}

#[test]
fn logins_return_to_this_machine_or_by_https() {
    req!("auth.redirect.localhost-or-https");
    let server = server(&json!({}));
    let client = ClientRegistration::preregistered(&server, "x", None);
    let to = |uri| AuthorizationRequest::new(&server, &client, uri, SERVER, None, None);

    for uri in [
        "http://127.0.0.1:1/callback",
        "http://localhost/x",
        "http://[::1]:1/",
        "https://app.example/x",
    ] {
        assert!(to(uri).is_ok(), "{uri}");
    }
    for uri in [
        "http://app.example/x",
        "app:/x",
        "javascript:x",
        "urn:ietf:wg:oauth:2.0:oob",
        "",
    ] {
        assert!(to(uri).is_err(), "{uri}");
    }
}

#[test]
fn an_answer_may_be_a_url_a_path_or_a_query() {
    let login = login();
    let state = parameter(login.url(), "state").unwrap();
    let query = format!("code=a%2Fb+c?&state={state}&iss=https%3A%2F%2Fas.example&more=x");

    for answer in [
        query.clone(),
        format!("?{query}"),
        format!("/callback?{query}"),
        format!("{CALLBACK}?{query}#_=_"),
    ] {
        let code = login.parse_response(&answer).unwrap();
        assert_eq!(code.code.expose(), "a/b c?", "{answer}");
        assert_eq!(
            (code.issuer.as_str(), code.resource.as_str()),
            (ISSUER, SERVER)
        );
    }
}

#[test]
fn an_answer_to_another_login_is_not_used() {
    req!("auth.redirect.state");
    let login = login();
    let state = parameter(login.url(), "state").unwrap();
    for answer in [
        "code=x&iss=https://as.example".to_owned(),
        "code=x&iss=https://as.example&state=".to_owned(),
        "code=x&iss=https://as.example&state=other".to_owned(),
        format!("code=x&iss=https://as.example&state={state}x"),
        format!(
            "code=x&iss=https://as.example&state={}",
            state.to_lowercase()
        ),
        format!("code=x&iss=https://as.example&state=other&state={state}"),
        format!("code=x&iss=https://as.example&state={state}&state=other"),
        "error=access_denied&error_description=Call+0800-EVIL&state=other".to_owned(),
        String::new(),
    ] {
        let failure = login.parse_response(&answer).unwrap_err();

        assert_eq!(failure.step(), AuthorizationStep::Callback);
        let told = format!("{failure:?}");
        assert!(!told.contains(&state) && !told.contains("EVIL"), "{told}");
    }
}

#[test]
fn an_answer_that_says_something_twice_is_not_used() {
    let login = login();
    for twice in [
        "code=a&code=b&iss=https://as.example",
        "code=a&iss=https://as.example&iss=https://as.example",
        "code=a&iss=https://as.example&iss=https://evil.example",
    ] {
        assert!(
            login.parse_response(&back(&login, twice)).is_err(),
            "{twice}"
        );
    }
}

#[test]
fn an_answer_from_another_server_is_not_used() {
    req!("auth.iss.record");
    req!("auth.iss.validate");
    req!("auth.iss.no-normalize");
    for is_promised in [true, false] {
        let promise = json!({ "authorization_response_iss_parameter_supported": is_promised });
        let login = login_at(&server(&promise)).unwrap();

        for iss in [
            "https://evil.example",
            "https://as.example/",
            "https://AS.example",
            "HTTPS://as.example",
            "https://as.example:443",
            "https://as.example%2F",
            "https://%2561s.example",
            "",
        ] {
            let failure = login
                .parse_response(&back(&login, &format!("code=x&iss={iss}")))
                .unwrap_err();
            assert!(
                failure.reason().contains("names the issuer"),
                "{iss}: {failure}"
            );
            assert_eq!(failure.step(), AuthorizationStep::Callback);
        }
        assert!(
            login
                .parse_response(&back(&login, "code=x&iss=https%3A%2F%2Fas.example"))
                .is_ok()
        );
        assert_eq!(
            login.parse_response(&back(&login, "code=x")).is_ok(),
            !is_promised
        );
    }
}

#[test]
fn an_error_from_another_server_is_not_told() {
    req!("auth.iss.error-response");
    let login = login();
    for iss in ["", "&iss=https://evil.example"] {
        let rest = format!("error=access_denied&error_description=Call+0800-EVIL{iss}");

        let failure = login.parse_response(&back(&login, &rest)).unwrap_err();

        assert_eq!(failure.error_code(), None);
        let told = format!("{failure:?}");
        assert!(!told.contains("EVIL") && !told.contains("denied"), "{told}");
    }
}

#[test]
fn an_error_is_told_with_what_to_do() {
    let login = login();
    let tell = |rest: &str| {
        let rest = format!("{rest}&iss=https://as.example");
        login.parse_response(&back(&login, &rest)).unwrap_err()
    };

    let denied = tell("error=access_denied&error_description=no+way%1b[2J");
    assert_eq!(denied.error_code(), Some("access_denied"));
    assert_eq!(denied.reason(), "access was denied");
    assert_eq!(denied.response(), Some(r"access_denied: no way\u{1b}[2J"));
    assert_eq!(denied.hint(), Some("log in again and allow it"));
    for error in [
        "invalid_scope",
        "invalid_target",
        "server_error",
        "unauthorized_client",
        "x",
    ] {
        let failure = tell(&format!("error={error}&code=sesame"));
        assert_eq!(failure.error_code(), Some(error));
        assert!(failure.hint().is_some());
        assert!(!format!("{failure:?}").contains("sesame"));
    }
    let odd = tell("error=what%0Aever");
    assert_eq!(odd.error_code(), None);
}

#[test]
fn an_answer_without_code_and_error_or_without_end_is_a_failure() {
    let login = login();
    for rest in ["iss=https://as.example", "code=&iss=https://as.example"] {
        assert!(login.parse_response(&back(&login, rest)).is_err(), "{rest}");
    }
    let long = format!("iss=https://as.example&code={}", "x".repeat(1 << 20));
    assert!(login.parse_response(&back(&login, &long)).is_err());
}

#[test]
fn offline_access_is_asked_for_only_where_it_is_known() {
    req!("auth.refresh.offline");
    let knows = server(&json!({ "scopes_supported": ["a", "offline_access"] }));
    let does_not = server(&json!({ "scopes_supported": ["a"] }));
    let asked: Option<Scopes> = Some("a".parse().unwrap());

    let more = with_offline_access(asked.clone(), &knows).unwrap();

    assert_eq!(more.to_string(), "a offline_access");
    assert_eq!(with_offline_access(asked.clone(), &does_not), asked);
    assert_eq!(with_offline_access(None, &knows), None);
    let client = ClientRegistration::preregistered(&knows, "x", None);
    let login = AuthorizationRequest::new(&knows, &client, CALLBACK, SERVER, Some(&more), None);
    assert_eq!(
        parameter(login.unwrap().url(), "prompt").as_deref(),
        Some("consent")
    );
}
