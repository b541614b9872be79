//! Runs the checker against correct servers and clients, and against mutants with one violation each.

#![expect(clippy::unwrap_used, reason = "a test panics on failure")]

mod allowed;
mod clients;
mod compliance;
mod exposed;
mod good;
mod hostile;
mod mutant;
mod mutants;
mod named_requirements;
mod process;
