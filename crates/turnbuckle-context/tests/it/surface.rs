//! What clients see: tools, resources, prompts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod checkpoints;
mod definitions;
mod isolation;
mod memories;
mod place;
mod prompts;
mod repository;
mod resources;
