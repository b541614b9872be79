//! What the code that `#[tool]`, `#[prompt]` and `#[resource]` write refers to. Not for use by hand; it may change at
//! any time.

pub use schemars;
pub use serde;

/// Compiles only for a `Result`.
pub const fn returns<T: Outcome>() {}

/// Implemented by `Result` alone.
///
/// ```
/// #[turnbuckle::tool]
/// async fn greet(name: String) -> std::io::Result<String> {
///     Ok(name)
/// }
/// ```
///
/// ```compile_fail,E0277
/// #[turnbuckle::tool]
/// async fn greet(name: String) -> String {
///     name
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool, prompt or resource returns a `Result`",
    label = "this is not a `Result`"
)]
pub trait Outcome {}

impl<T, E> Outcome for Result<T, E> {}
