use proptest::prelude::*;

use super::*;

fn parse(header: &str) -> Vec<Challenge> {
    Challenge::parse(header).unwrap_or_else(|error| panic!("{header}: {error}"))
}

/// Returns schemes and parameters as text.
fn shown(header: &str) -> Vec<String> {
    parse(header).iter().map(Challenge::to_string).collect()
}

#[test]
fn a_bearer_challenge_is_parsed() {
    let challenges = parse(
        r#"Bearer error="invalid_token", error_description="it has expired", resource_metadata="https://a.example/.well-known/oauth-protected-resource/mcp", scope="a b""#,
    );

    let [bearer] = &challenges[..] else {
        panic!("{challenges:?}");
    };
    assert!(bearer.is_scheme("BEARER"));
    assert_eq!(bearer.parameter("Error"), Some("invalid_token"));
    assert_eq!(bearer.parameter("scope"), Some("a b"));
    assert_eq!(
        bearer.parameter("resource_metadata"),
        Some("https://a.example/.well-known/oauth-protected-resource/mcp")
    );
    assert_eq!(bearer.parameter("realm"), None);
}

#[test]
fn several_challenges_in_one_header_are_separated() {
    assert_eq!(
        shown(r#"Negotiate, Basic realm="a, b=c", charset=UTF-8, DPoP algs="ES256 EdDSA",Bearer"#),
        [
            "Negotiate",
            r#"Basic realm="a, b=c", charset="UTF-8""#,
            r#"DPoP algs="ES256 EdDSA""#,
            "Bearer",
        ]
    );
}

#[test]
fn token68_credentials_are_skipped() {
    assert_eq!(
        shown("Negotiate YII+/abc==, Bearer scope=a"),
        ["Negotiate", r#"Bearer scope="a""#]
    );
    assert_eq!(shown("NTLM TlRMTVNTUAAC="), ["NTLM"]);
}

#[test]
fn common_syntax_errors_are_accepted() {
    let url = "https://a.example/x?y=z";

    let unquoted = parse(&format!("Bearer resource_metadata={url} , scope=a"));
    assert_eq!(unquoted[0].parameter("resource_metadata"), Some(url));
    assert_eq!(unquoted[0].parameter("scope"), Some("a"));

    let spaced = parse(&format!("bearer\tresource_metadata = \"{url}\",, ,"));
    assert_eq!(spaced[0].parameter("resource_metadata"), Some(url));

    assert_eq!(shown(""), [""; 0]);
}

#[test]
fn the_first_of_duplicate_parameters_is_used() {
    let twice = parse(r#"Bearer scope="a", Scope="b""#);

    assert_eq!(twice[0].parameter("scope"), Some("a"));
}

#[test]
fn escapes_within_quotes_are_removed() {
    let escaped = parse(r#"Bearer error_description="say \"please\", then \\""#);

    let found = escaped[0].parameter("error_description");
    assert_eq!(found, Some(r#"say "please", then \"#));
}

#[test]
fn a_syntax_error_has_its_position() {
    for (header, at) in [
        (r#"="a""#, 0),
        (r#"scope="a""#, 9),
        (r#"Bearer scope="a"#, 14),
        (r#"Bearer scope="a\"#, 14),
        ("Bearer a=b, scope=, realm=a", 18),
        (r#"Bearer "a""#, 7),
        ("Bäarer", 1),
    ] {
        let error = Challenge::parse(header).unwrap_err();

        assert_eq!(error, InvalidChallenge::Syntax { offset: at }, "{header}");
    }
}

#[test]
fn an_oversized_header_is_rejected() {
    let header = "Bearer ".repeat(Challenge::MAX_HEADER_BYTES);

    assert_eq!(Challenge::parse(&header), Err(InvalidChallenge::TooLong));
}

#[test]
fn a_written_challenge_is_a_valid_header() {
    let challenge = Challenge::bearer().error("invalid_token", "it is \"old\",\r\nSet-Cookie: ä");

    assert_eq!(
        challenge.to_string(),
        r#"Bearer error="invalid_token", error_description="it is \"old\",  Set-Cookie:  ""#
    );
}

#[test]
fn empty_scopes_are_not_written() {
    let challenge = Challenge::dpop().scope(&Scopes::default());

    assert_eq!(challenge.to_string(), "DPoP");
}

proptest! {
    #[test]
    fn a_written_challenge_is_parsed_to_itself(
        parameters in prop::collection::vec(("[a-z_]{1,12}", "[\\t -~]{0,40}"), 0..6),
    ) {
        let written = parameters.iter().fold(Challenge::bearer(), |challenge, (name, value)| challenge.with_parameter(name, value));

        prop_assert_eq!(Challenge::parse(&written.to_string()), Ok(vec![written]));
    }

    #[test]
    fn any_header_is_parsed_without_panic(header in any::<String>()) {
        let _ = Challenge::parse(&header);
    }
}
