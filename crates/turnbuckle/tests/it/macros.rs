//! The attributes generate the same values as the builders, and errors are reported at their position.

mod compile_fail;
mod peer;
mod prompts;
mod resources;
mod scopes;
mod tools;
mod visibility;
