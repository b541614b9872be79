//! What the attributes make is what the builders make, and mistakes are told where they are.

mod compile_fail;
mod peer;
mod prompts;
mod resources;
mod tools;
