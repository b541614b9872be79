//! What the attributes make is what the builders make, and mistakes are told where they are.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compile_fail;
mod peer;
mod prompts;
mod resources;
mod scopes;
mod tools;
mod visibility;
