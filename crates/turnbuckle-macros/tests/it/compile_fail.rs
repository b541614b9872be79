//! Files that must not compile, each with what the compiler says about it.
//!
//! After a change of messages, `TRYBUILD=overwrite cargo test -p turnbuckle-macros mistakes` writes them anew; read them.

#[test]
fn mistakes_are_told_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
