//! Mistakes that rustc itself refuses. `TRYBUILD=overwrite` accepts new messages.

#[test]
fn what_rustc_refuses() {
    trybuild::TestCases::new().compile_fail("tests/rustc/*.rs");
}
