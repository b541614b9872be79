use serde_json::json;

use super::*;

/// Returns a token, concatenated so that this file does not contain one.
fn token() -> String {
    ["ghp_", "a8Zk2Qp9Lx0Vt7RmB3nC5dF1gH4jK6sW8yEu"].concat()
}

#[test]
fn every_rule_compiles_and_can_match() {
    let redactor = Redactor::standard();
    assert!(redactor.rules.len() >= 35);
    for rule in &redactor.rules {
        let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(rule.id.bytes().all(is_id), "{}", rule.id);
        if rule.finder.is_some() {
            continue;
        }
        assert!(!rule.keywords.is_empty(), "{}", rule.id);
        assert!(rule.keywords.iter().all(|keyword| keyword.len() >= 2));
        assert!(!rule.regex().as_str().contains("(?&"), "{}", rule.id);
        // A rule that matches the empty string would insert markers everywhere.
        assert!(!rule.regex().is_match(""), "{}", rule.id);
    }
}

#[test]
fn a_token_is_replaced_by_its_rule_id() {
    let text = format!("use {} for it", token());
    let redacted = Redactor::standard().redact(&text);
    assert_eq!(redacted.text, "use [REDACTED:github-pat] for it");
    let mut counts = BTreeMap::new();
    redacted.count_into(&mut counts);
    assert_eq!(counts, BTreeMap::from([(Arc::from("github-pat"), 1)]));
}

#[test]
fn a_secret_with_the_prefix_of_a_vendor_is_replaced_even_if_it_looks_like_a_placeholder() {
    for (prefix, rest, rule) in [
        ("AKIA", "IOSFODNN7EXAMPLE", "aws-access-key-id"),
        ("ghp_", "0123456789abcdef0123456789abcdef0123", "github-pat"),
        ("ghp_", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "github-pat"),
        (
            "sk-ant-",
            "api03-dummydummydummydummydummydummydummy",
            "anthropic-api-key",
        ),
        (
            "sk-",
            "proj-replace0me0replace0me0replace0me",
            "openai-api-key",
        ),
        ("xoxb-", "000000000000-example-token", "slack-token"),
        ("glpat-", "sample12345678901234", "gitlab-pat"),
    ] {
        let text = format!("key {prefix}{rest} here");

        let redacted = Redactor::standard().redact(&text);

        assert_eq!(redacted.text, format!("key [REDACTED:{rule}] here"));
    }
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    let redacted = Redactor::standard().redact("let token = parser.next_token();");
    assert!(matches!(redacted.text, Cow::Borrowed(_)));
}

#[test]
fn overlapping_findings_get_the_id_of_the_more_specific_rule() {
    let text = format!("GITHUB_TOKEN={}", token());
    let redacted = Redactor::standard().redact(&text);
    assert_eq!(redacted.text, "GITHUB_TOKEN=[REDACTED:github-pat]");
    assert_eq!(redacted.findings.len(), 1);
}

#[test]
fn user_and_host_of_a_url_are_kept() {
    let text = format!(
        "git clone https://ada:{}@git.internal/a.git",
        &token()[4..16]
    );
    let redacted = Redactor::standard().redact(&text);
    let expected = "git clone https://ada:[REDACTED:url-password]@git.internal/a.git";
    assert_eq!(redacted.text, expected);
}

#[test]
fn line_breaks_of_a_key_block_are_kept() {
    let line = token()[4..].repeat(2);
    let (begin, end) = ("-----BEGIN PRIVATE", "-----END PRIVATE");
    let text = format!("a\n{begin} KEY-----\n{line}\n{line}\nAb3=\n{end} KEY-----\nb\n");
    let redacted = Redactor::standard().redact(&text);
    assert_eq!(redacted.text, "a\n[REDACTED:private-key]\n\n\n\n\nb\n");
}

#[test]
fn a_key_without_an_end_is_redacted_and_the_following_text_is_kept() {
    let line = token()[4..].repeat(2);
    let text = format!(
        "-----BEGIN RSA PRIVATE{} KEY-----\n{line}\n{line}\n\nlet us go on",
        ""
    );
    let redacted = Redactor::standard().redact(&text);
    assert_eq!(redacted.text, "[REDACTED:private-key]\n\n\n\nlet us go on");
}

#[test]
fn a_value_is_redacted_because_of_its_name() {
    let redactor = Redactor::standard();
    let redacted = redactor.redact_value("db_password", "hunter2!");
    assert_eq!(redacted.text, "[REDACTED:password]");
    assert!(
        redactor
            .redact_value("greeting", "hunter2!")
            .findings
            .is_empty()
    );
    assert!(redactor.redact_value("password", "").findings.is_empty());
    let text = format!("\"{}\" is quoted", token());
    let redacted = redactor.redact_value("note", &text);
    assert_eq!(redacted.text, "\"[REDACTED:github-pat]\" is quoted");
}

#[test]
fn nested_json_values_and_member_names_are_redacted() {
    let mut value = json!({ "a": [{ "password": "hunter2!" }, token(), 1], token(): null });
    let findings = Redactor::standard().redact_json(&mut value);
    assert_eq!(findings.len(), 3);
    let expected = json!({
        "a": [{ "password": "[REDACTED:password]" }, "[REDACTED:github-pat]", 1],
        "[REDACTED:github-pat]": null,
    });
    assert_eq!(value, expected);
}

#[test]
fn existing_markers_are_kept() {
    for text in [
        "password=[REDACTED:password]",
        "f(\"[REDACTED:password]\", \"hunter22!\")",
        "https://ada:[REDACTED:url-password]@host/",
        "token: '[REDACTED:github-pat]'",
        "[REDACTED:",
        "[redacted:secret]",
    ] {
        assert_eq!(Redactor::standard().redact(text).text, text);
    }
}

/// Texts that cause quadratic time in a naive search.
const HOSTILE: &[&str] = &[
    "password=",
    "-----BEGIN PRIVATE KEY-----",
    "# -----BEGIN PRIVATE KEY-----\n",
    "# -----BEGIN PRIVATE KEY-----\n# MIIEvQIBADANBgkqhkiG9w0BAQ\n",
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
    "eyJaaaaaaaaaaaaa.eyJaaaaaaaaaaaa.",
    "http://a:b",
    "http://a:b@c.d/",
    "http://a:b@c.d/ ",
    "machine a login b password ",
    "cookie: a=b;",
    "cookie: sid=aaaaaaaaaaaaaaaaa;",
    "mysql -pabc",
    "docker login -p abcd ",
    "variable \"password\" { default = ",
    "\"name\": \"password\", ",
    "name,password\n",
    "| a | password |\n",
    "abandon ability ",
    "private keys\n",
    "recovery codes: 123456 ",
    "[REDACTED:",
];

#[test]
fn hostile_texts_take_linear_time() {
    let started = std::time::Instant::now();
    for unit in HOSTILE {
        let text = unit.repeat(50_000 / unit.len());
        Redactor::standard().redact(&text);
    }
    // Quadratic time would be minutes; linear time is short even without optimization.
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn no_rule_scans_a_part_of_a_text_twice() {
    let redactor = Redactor::standard();
    for unit in HOSTILE {
        let text = unit.repeat(4_000 / unit.len());
        let most = redactor.rules.len() * text.len();
        assert!(redactor.find(&text).scanned <= most, "{unit}");
    }
}
