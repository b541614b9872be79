use super::*;

#[test]
#[should_panic(expected = "`base.jsonrpc.confrom` is not in spec/requirements.csv")]
fn a_misspelt_claim_fails_its_test() {
    crate::req!("base.jsonrpc.confrom");
}

#[test]
#[should_panic(expected = "`base.components.modern` does not name 2025-11-25")]
fn a_claim_in_a_revision_that_the_row_does_not_name_fails_its_test() {
    crate::req!("base.components.modern", in: ["2025-11-25"]);
}

#[test]
fn claims_are_read_as_they_were_written() {
    let folder = env::temp_dir().join(format!("turnbuckle-claims-{}", process::id()));
    let first = TestName::new("a-crate::it", "module::one");
    let second = TestName::new("b-crate", "two");

    append(&folder, &["base.id", "a-crate::it", "module::one"]).unwrap();
    append(&folder, &["@2025-11-25", "a-crate::it", "module::one"]).unwrap();
    append(
        &folder,
        &["base.id", "b-crate", "two", "2024-11-05 2026-07-28"],
    )
    .unwrap();
    append(&folder, &["@2025-03-26", "b-crate", "two"]).unwrap();
    let claims = read(&folder).unwrap();
    fs::remove_dir_all(&folder).unwrap();

    let [one, two] = claims.for_requirement("base.id") else {
        panic!("two claims: {claims:?}");
    };
    assert_eq!((&one.test, &two.test), (&first, &second));
    assert!(claims.is_made_in(one, "2025-11-25"));
    assert!(!claims.is_made_in(one, "2026-07-28"));
    assert!(claims.is_made_in(two, "2026-07-28"));
    assert!(!claims.is_made_in(two, "2025-03-26"), "it names its own");
}

#[test]
fn a_missing_folder_holds_no_claims() {
    let claims = read(Path::new("no/such/folder")).unwrap();

    assert_eq!(claims.iter().count(), 0);
}

#[test]
fn a_settled_handshake_and_a_modern_request_are_evidence_of_their_revision() {
    let settled =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{}}}"#;
    let modern = r#"{"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

    let discovered = r#"{"id":1,"result":{"supportedVersions":["2026-07-28"]}}"#;

    assert_eq!(message_revision(discovered), Some("2026-07-28"));
    assert_eq!(message_revision(settled), Some("2025-06-18"));
    assert_eq!(message_revision(modern), Some("2026-07-28"));
}

#[test]
fn a_proposal_or_an_unsupported_version_is_evidence_of_nothing() {
    let proposed =
        r#"{"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{}}}"#;
    let unsupported = r#"{"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}}}"#;

    let tried = r#"{"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

    assert_eq!(message_revision(tried), None);
    assert_eq!(message_revision(proposed), None);
    assert_eq!(message_revision(unsupported), None);
    assert_eq!(message_revision("protocolVersion"), None);
    assert_eq!(message_revision("\"protocolVersion\":\"é\""), None);
}
