//! What clients see: tools, resources, prompts.

mod checkpoints;
mod collections;
mod definitions;
mod embeddings;
mod faults;
mod isolation;
mod memories;
mod place;
mod prompts;
mod repository;
mod resources;
