//! Runs rules against a server and records what was exchanged.

pub(crate) mod check_context;
pub(crate) mod outcome;
pub(crate) mod run;
pub(crate) mod transcript;
pub(crate) mod transcript_query;
