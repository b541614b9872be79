use super::*;

#[test]
fn every_rule_compiles_and_can_be_met() {
    let redactor = Redactor::standard();
    assert!(redactor.rules.len() >= 35);
    for rule in &redactor.rules {
        assert!(!rule.keywords.is_empty(), "{}", rule.id);
        assert!(rule.keywords.iter().all(|keyword| keyword.len() >= 2));
        assert!(rule.regex().as_str().len() > 4);
    }
}

#[test]
fn a_token_is_taken_out_and_named() {
    let token = format!("ghp_{}", "a8Zk2Qp9Lx0Vt7RmB3nC5dF1gH4jK6sW8yEu");
    let text = format!("use {token} for it");
    let redacted = Redactor::standard().redact(&text);
    assert_eq!(redacted.text, "use [REDACTED:github-pat] for it");
    assert_eq!(redacted.findings.len(), 1);
}
