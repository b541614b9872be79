//! Hearing from the browser, on this machine.
