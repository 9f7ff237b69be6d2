//! Wrong calls do not compile, and what rustc says names the parameter.

#[test]
fn wrong_calls_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
