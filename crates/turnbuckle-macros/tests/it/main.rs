//! The attributes generate the same values as the builders, and errors are reported at their position.

#![expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod compile_fail;
mod peer;
mod prompts;
mod resources;
mod scopes;
mod tools;
mod visibility;
