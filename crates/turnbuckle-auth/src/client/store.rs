//! Where logins are kept.
