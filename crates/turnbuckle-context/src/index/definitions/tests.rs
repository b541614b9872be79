use super::*;

fn found(language: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let family = Family::of(language).expect(language);
    let found = definitions(family, &lines);
    found
        .iter()
        .map(|found| format!("{} {}", found.kind, found.name))
        .collect()
}

#[track_caller]
fn check(language: &str, text: &str, wanted: &[&str]) {
    assert_eq!(found(language, text), wanted, "{language}");
}

#[test]
fn rust() {
    let text = r#"
pub(crate) async fn open_file<T>(path: T) {}
    pub const fn small() -> u8 {}
pub unsafe extern "C" fn call() {}
pub struct Reader<'a> {
struct Unit;
enum Kind { A }
impl<T: Into<Vec<u8>>> fmt::Display for crate::Wrapper<T> {
impl Reader<'_> {
mod tests;
mod inner {
macro_rules! req {
const LIMIT: usize = 1;
    const INNER: usize = 1;
type Found<'t> = Option<&'t str>;
    let fn_name = 1;
    typed(x);
pub trait Store: Send {
"#;
    check(
        "rust",
        text,
        &[
            "function open_file",
            "function small",
            "function call",
            "type Reader",
            "type Kind",
            "impl Wrapper",
            "impl Reader",
            "module inner",
            "macro req",
            "constant LIMIT",
            "type Found",
            "trait Store",
        ],
    );
}
