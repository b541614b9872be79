//! Tests of the MCP interface: tools, resources, prompts.

mod checkpoints;
mod collections;
mod definitions;
mod embeddings;
mod faults;
mod isolation;
mod memories;
mod prompts;
mod repository;
mod resources;
mod test_project;
