use super::*;

fn ada() -> LoginSummary {
    LoginSummary {
        key: "https://api.example/mcp".to_owned(),
        user: None,
        server: "https://api.example/mcp".to_owned(),
        issuer: "https://auth.example".to_owned(),
        subject: Some("248289761001".to_owned()),
        name: Some("ada@example.com".to_owned()),
        scopes: Some(vec!["files:read".to_owned(), "files:write".to_owned()]),
        client_id: "s6BhdRkqt3".to_owned(),
        expires_at: Some(1_800_000_000),
        renewable: true,
        key_bound: false,
        is_encrypted: false,
    }
}

fn before_its_end(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 - seconds)
}

#[test]
fn a_summary_has_user_scopes_and_expiry() {
    insta::assert_snapshot!(style::strip(&ada().render(before_its_end(3599), 100)), @r"
    server   https://api.example/mcp
    issuer   https://auth.example
    subject  248289761001 (ada@example.com)
    scopes   files:read files:write
    client   s6BhdRkqt3
    expires  2027-01-15T08:00:00Z (in 59 m; refreshed when needed)
    stored   in a file that only you can read
    ");
}

#[test]
fn absent_fields_are_left_out() {
    let summary = LoginSummary {
        server: "https://api.example/mcp".to_owned(),
        issuer: "https://auth.example".to_owned(),
        client_id: "me\u{1b}[2J".to_owned(),
        key_bound: true,
        ..LoginSummary::default()
    };

    insta::assert_snapshot!(style::strip(&summary.render(before_its_end(1), 100)), @r"
    server   https://api.example/mcp
    issuer   https://auth.example
    client   me\u{1b}[2J
    expires  unknown
    bound    to a key on this machine
    stored   in a file that only you can read
    ");
}

#[test]
fn an_expired_login_shows_what_happens_next() {
    let mut summary = ada();
    let past = before_its_end(0);

    assert_eq!(
        summary.expiry_text(past),
        "2027-01-15T08:00:00Z (expired; refreshed on next use)"
    );
    summary.renewable = false;
    assert_eq!(
        summary.expiry_text(past),
        "2027-01-15T08:00:00Z (expired; log in again)"
    );
    summary.expires_at = Some(u64::MAX);
    assert!(
        summary
            .expiry_text(past)
            .starts_with("18446744073709551615 (")
    );
}

#[test]
fn many_logins_are_a_table() {
    let mut other = ada();
    other.server = "http://127.0.0.1:8321/mcp?key=sesame".to_owned();
    (other.renewable, other.subject, other.name, other.scopes) = (false, None, None, None);

    insta::assert_snapshot!(style::strip(&table(&[ada(), other], before_its_end(90), 120)), @r"
    server                         subject          issuer                expires    scopes
    https://api.example/mcp        ada@example.com  https://auth.example  refreshed  files:read files:write
    http://127.0.0.1:8321/mcp?***                   https://auth.example  in 1 m
    ");
}

#[test]
fn json_has_every_field() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&ada().document()).unwrap(), @r#"
    {
      "server": "https://api.example/mcp",
      "issuer": "https://auth.example",
      "subject": "248289761001",
      "name": "ada@example.com",
      "scopes": [
        "files:read",
        "files:write"
      ],
      "clientId": "s6BhdRkqt3",
      "expires": "2027-01-15T08:00:00Z",
      "renews": true,
      "bound": false,
      "encrypted": false
    }
    "#);
}
