//! Targets that two programs use: `instructions` on every change, `compare` in a run for the page.

/// The most that a call may cost the client, as a multiple of the limit: in instructions, and in CPU time.
pub const CLIENT_TIMES: f64 = 1.4;

/// The most that a call may cost the gateway, as a multiple of the limit: in instructions, and in CPU time.
pub const GATEWAY_TIMES: f64 = 1.5;
