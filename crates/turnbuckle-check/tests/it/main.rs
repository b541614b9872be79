//! The checker against servers and clients that are right, and against ones that are not quite.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod allowed;
mod clients;
mod compliance;
mod exposed;
mod good;
mod hostile;
mod mutant;
mod mutants;
mod process;
