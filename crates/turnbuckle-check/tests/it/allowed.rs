//! Unusual behavior that the specification allows: no rule fails for it.

mod calls;
mod features;
mod wire;
