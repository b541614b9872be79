//! What clients see: tools, resources, prompts.

mod checkpoints;
mod definitions;
mod place;
