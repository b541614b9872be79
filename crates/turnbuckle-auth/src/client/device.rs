//! Logging in on another device.
