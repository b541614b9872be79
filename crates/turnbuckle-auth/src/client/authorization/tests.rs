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

/// Returns a response with the right state.
fn back(login: &AuthorizationRequest, rest: &str) -> String {
    let state = parameter(login.url(), "state").unwrap();
    format!("{CALLBACK}?state={state}&{rest}")
}

#[test]
fn an_authorization_request_has_all_parameters() {
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
fn absent_options_are_left_out_of_the_request() {
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
fn each_login_has_random_unprinted_secrets() {
    let (one, other) = (login(), login());

    for name in ["state", "code_challenge"] {
        let value = parameter(one.url(), name).unwrap();
        assert_ne!(Some(&value), parameter(other.url(), name).as_ref());
        assert!(value.len() >= 22, "128 bits: {value}");
        assert!(!format!("{one:?}").contains(&value));
    }
}

#[test]
fn a_server_without_pkce_is_rejected() {
    req!("auth.pkce.verify");
    req!("auth.pkce.refuse");
    for methods in [json!(null), json!([]), json!(["plain"]), json!(["s256"])] {
        let server = server(&json!({ "code_challenge_methods_supported": methods }));

        let error = login_at(&server).unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Authorization);
        assert!(error.reason().contains("PKCE"), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn an_unsafe_authorization_endpoint_is_rejected() {
    // CVE-2025-6514: the URL of a server was passed to a shell.
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

        let error = login_at(&server).unwrap_err();

        assert!(error.reason().contains("authorization endpoint"), "{error}");
        assert!(!error.reason().contains(char::is_control), "{error}");
    }
    let none = server(&json!({ "authorization_endpoint": null }));
    assert!(login_at(&none).unwrap_err().hint().is_some());
}

#[test]
fn shell_characters_are_escaped_in_the_login_url() {
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
fn an_endpoint_query_stays_unless_it_has_reserved_parameters() {
    let url = |endpoint: &str| {
        let login = login_at(&server(&json!({ "authorization_endpoint": endpoint })));
        login.map(|login| login.url().to_owned())
    };

    let stored = url("https://as.example/authorize?tenant=a%2Fb").unwrap();
    assert!(stored.starts_with("https://as.example/authorize?tenant=a%2Fb&response_type=code&"));
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
fn redirect_uris_are_loopback_or_https() {
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
fn a_response_may_be_a_url_a_path_or_a_query() {
    let login = login();
    let state = parameter(login.url(), "state").unwrap();
    let query = format!("code=a%2Fb+c?&state={state}&iss=https%3A%2F%2Fas.example&more=x");

    for response in [
        query.clone(),
        format!("?{query}"),
        format!("/callback?{query}"),
        format!("{CALLBACK}?{query}#_=_"),
    ] {
        let code = login.parse_response(&response).unwrap();
        assert_eq!(code.code.expose(), "a/b c?", "{response}");
        assert_eq!(
            (code.issuer.as_str(), code.resource.as_str()),
            (ISSUER, SERVER)
        );
    }
}

#[test]
fn a_response_with_another_state_is_rejected() {
    req!("auth.redirect.state");
    let login = login();
    let state = parameter(login.url(), "state").unwrap();
    for response in [
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
        let error = login.parse_response(&response).unwrap_err();

        assert_eq!(error.step(), AuthorizationStep::Callback);
        let text = format!("{error:?}");
        assert!(!text.contains(&state) && !text.contains("EVIL"), "{text}");
    }
}

#[test]
fn a_response_with_duplicate_parameters_is_rejected() {
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
fn a_response_of_another_issuer_is_rejected() {
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
            let error = login
                .parse_response(&back(&login, &format!("code=x&iss={iss}")))
                .unwrap_err();
            assert!(
                error.reason().contains("names the issuer"),
                "{iss}: {error}"
            );
            assert_eq!(error.step(), AuthorizationStep::Callback);
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
fn an_error_of_another_issuer_is_not_reported() {
    req!("auth.iss.error-response");
    let login = login();
    for iss in ["", "&iss=https://evil.example"] {
        let rest = format!("error=access_denied&error_description=Call+0800-EVIL{iss}");

        let error = login.parse_response(&back(&login, &rest)).unwrap_err();

        assert_eq!(error.error_code(), None);
        let text = format!("{error:?}");
        assert!(!text.contains("EVIL") && !text.contains("denied"), "{text}");
    }
}

#[test]
fn an_error_response_has_a_hint() {
    let login = login();
    let response_error = |rest: &str| {
        let rest = format!("{rest}&iss=https://as.example");
        login.parse_response(&back(&login, &rest)).unwrap_err()
    };

    let denied = response_error("error=access_denied&error_description=no+way%1b[2J");
    assert_eq!(denied.error_code(), Some("access_denied"));
    assert_eq!(denied.reason(), "access was denied");
    assert_eq!(denied.response(), Some(r"access_denied: no way\u{1b}[2J"));
    assert_eq!(denied.hint(), Some("log in again and allow it"));
    for code in [
        "invalid_scope",
        "invalid_target",
        "server_error",
        "unauthorized_client",
        "x",
    ] {
        let error = response_error(&format!("error={code}&code=sesame"));
        assert_eq!(error.error_code(), Some(code));
        assert!(error.hint().is_some());
        assert!(!format!("{error:?}").contains("sesame"));
    }
    let unknown = response_error("error=what%0Aever");
    assert_eq!(unknown.error_code(), None);
}

#[test]
fn a_response_without_code_and_error_or_too_long_is_an_error() {
    let login = login();
    for rest in ["iss=https://as.example", "code=&iss=https://as.example"] {
        assert!(login.parse_response(&back(&login, rest)).is_err(), "{rest}");
    }
    let long = format!("iss=https://as.example&code={}", "x".repeat(1 << 20));
    assert!(login.parse_response(&back(&login, &long)).is_err());
}

#[test]
fn offline_access_is_requested_only_if_supported() {
    req!("auth.refresh.offline");
    let supporting = server(&json!({ "scopes_supported": ["a", "offline_access"] }));
    let unsupporting = server(&json!({ "scopes_supported": ["a"] }));
    let requested: Option<Scopes> = Some("a".parse().unwrap());

    let more = with_offline_access(requested.clone(), &supporting).unwrap();

    assert_eq!(more.to_string(), "a offline_access");
    assert_eq!(
        with_offline_access(requested.clone(), &unsupporting),
        requested
    );
    assert_eq!(with_offline_access(None, &supporting), None);
    let client = ClientRegistration::preregistered(&supporting, "x", None);
    let login =
        AuthorizationRequest::new(&supporting, &client, CALLBACK, SERVER, Some(&more), None);
    assert_eq!(
        parameter(login.unwrap().url(), "prompt").as_deref(),
        Some("consent")
    );
}
