//! What clients see: tools, resources, prompts.

mod definitions;
mod place;
