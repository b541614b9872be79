//! Files that must not compile, each with the expected compiler output.
//!
//! After a change of messages, `TRYBUILD=overwrite cargo test -p turnbuckle --all-features errors_are_reported` rewrites them; review
//! the result.

#[test]
fn errors_are_reported_at_their_position() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
