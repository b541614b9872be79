//! Goals that two programs judge by: `instructions` on every change, `compare` in a run for the page.

/// How many times what the limit takes a call may cost the client: in instructions, and in time of the processor.
pub const CLIENT_TIMES: f64 = 1.4;
