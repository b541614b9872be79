//! The architecture rules, one file per subject.

mod crate_graph;
mod deny;
mod hostile_input;
mod mutants;
mod packaging;
mod sources;
mod vocabulary;
