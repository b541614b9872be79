//! Handlers with unsupported signatures, each with the compiler's explanation.
//!
//! After a change of messages, `TRYBUILD=overwrite cargo test -p turnbuckle-server unsupported_signatures` rewrites them;
//! review the result.

#[test]
fn unsupported_signatures_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
