//! The checker against servers and clients that are right, and against ones that are not quite.

mod clients;
mod good;
mod mutant;
mod mutants;
